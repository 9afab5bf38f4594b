//! Actors by name: a tag that people choose, or the number that each has anyway.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, Weak};

use crate::api::address::{ActorId, Address};

type Entry = (ActorId, Box<dyn Any + Send + Sync>);

#[derive(Debug, Default)]
struct Names {
    tags: HashMap<String, Entry>,
    ids: HashMap<ActorId, Box<dyn Any + Send + Sync>>,
}

/// The names of a system, for any thread and any actor. An actor that ends leaves it.
#[derive(Debug, Clone, Default)]
pub struct Registry(Arc<RwLock<Names>>);

/// Another actor has the tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the tag is taken")]
pub struct TagTaken;

fn copy<A: 'static>(entry: Option<&Box<dyn Any + Send + Sync>>) -> Option<Address<A>> {
    entry?.downcast_ref::<Address<A>>().cloned()
}

impl Registry {
    /// Gives an actor a tag.
    pub fn register<A: 'static>(&self, tag: &str, address: &Address<A>) -> Result<(), TagTaken> {
        let id = address.id();
        {
            let mut names = self.0.write().unwrap_or_else(PoisonError::into_inner);
            if names.tags.contains_key(tag) {
                return Err(TagTaken);
            }
            names.tags.insert(tag.to_owned(), (id, Box::new(address.clone())));
            names.ids.insert(id, Box::new(address.clone()));
        }
        let names = Arc::downgrade(&self.0);
        address.watch_with(Box::new(move |_, _| forget(&names, id)));
        Ok(())
    }

    /// The actor of a tag, if it is of this type.
    #[must_use]
    pub fn find<A: 'static>(&self, tag: &str) -> Option<Address<A>> {
        let names = self.0.read().unwrap_or_else(PoisonError::into_inner);
        copy::<A>(names.tags.get(tag).map(|(_, entry)| entry))
    }

    /// A registered actor by its number.
    #[must_use]
    pub fn find_id<A: 'static>(&self, id: ActorId) -> Option<Address<A>> {
        let names = self.0.read().unwrap_or_else(PoisonError::into_inner);
        copy::<A>(names.ids.get(&id))
    }
}

fn forget(names: &Weak<RwLock<Names>>, id: ActorId) {
    if let Some(names) = names.upgrade() {
        let mut names = names.write().unwrap_or_else(PoisonError::into_inner);
        names.ids.remove(&id);
        names.tags.retain(|_, (other, _)| *other != id);
    }
}
