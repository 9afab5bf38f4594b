//! The connection to other hosts, as the loop sees it: a bounded queue of orders to the task that
//! holds it, and inputs that come from there. Which protocol the task speaks is not known here.

use std::time::Duration;

use hob_core::hosts::{News, Order};
use hob_os::clock;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::settings::Settings;
use crate::inputs::Input;

/// Orders that wait for the task: the asks and the answers that may be open, and some more.
const ORDERS_MAX: usize = 4096;
/// For so long an end waits for what is on its way to be sent.
const END_WAIT: Duration = Duration::from_secs(1);

/// Starts the task that holds the connection, in the runtime of the loop, which has one thread. It
/// ends after [`Order::Stop`], or when its orders are closed.
pub type Connect = fn(Settings, mpsc::Receiver<Order>, Inbox) -> JoinHandle<()>;

/// Where the task says what it sees.
#[derive(Debug, Clone)]
pub struct Inbox(mpsc::Sender<Input>);

impl Inbox {
    pub(crate) fn new(inbox: mpsc::Sender<Input>) -> Inbox {
        Inbox(inbox)
    }

    /// Waits until the loop has room for it; `false`: the loop has ended.
    pub async fn tell(&self, news: News) -> bool {
        self.0.send(came(news)).await.is_ok()
    }

    /// The same without waiting; `false`: the loop has no room for it.
    #[must_use]
    pub fn try_tell(&self, news: News) -> bool {
        self.0.try_send(came(news)).is_ok()
    }
}

/// What has come by now.
fn came(news: News) -> Input {
    Input::Hosts { news, came_ns: clock::now_ns() }
}

/// The task, and the queue to it.
#[derive(Debug)]
pub(crate) struct Link {
    orders: mpsc::Sender<Order>,
    task: JoinHandle<()>,
}

impl Link {
    pub(crate) fn start(connect: Connect, settings: Settings, inbox: Inbox) -> Link {
        let (orders, receiver) = mpsc::channel(ORDERS_MAX);
        let task = connect(settings, receiver, inbox);
        Link { orders, task }
    }

    /// Hands an order over; `false`: the task takes no more.
    pub(crate) fn order(&self, order: Order) -> bool {
        self.orders.try_send(order).is_ok()
    }

    /// Ends the connection when what is on its way is sent, or a moment has passed.
    pub(crate) async fn end(self) {
        self.order(Order::Stop);
        let _ = tokio::time::timeout(END_WAIT, self.task).await;
    }
}
