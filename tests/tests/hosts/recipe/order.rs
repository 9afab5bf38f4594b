//! Tells with a key, of which one host is cut off: they keep their order on the other one, and on both
//! when it is back.

use hob_tests::wait;

use super::super::tells::keys::{Log, tells};
use super::{BOUND, HOSTS, WEBS, connections, followed, seen, shell};

const KEYS: u64 = 12;
/// So many are told of each key before the cable is pulled, while it is out, and when it is in again.
const OF_EACH: u64 = 50;
const PARTITIONS: u64 = 4;

#[test]
fn tells_of_a_key_keep_their_order_while_a_host_is_cut_off_and_when_it_is_back() {
    let network = followed();
    let log = Log::new();
    for name in WEBS {
        let machine = network.machine(name);
        machine.world.file("greeter.py", log.handlers().replace("notes", "handle"));
        let more =
            format!("printf 'partitions = {PARTITIONS}\\ntries = 8\\n' >> hob.toml\nhob trust");
        shell(machine, &more).succeeded();
    }
    wait::until("two hosts with partitions", || {
        let has = seen(&network).iter().filter(|each| each["partitions"] == PARTITIONS).count();
        (has == WEBS.len()).then_some(())
    });
    let performed = || log.performed().values().map(|all| all.len() as u64).sum::<u64>();
    let desk = &network.machine("desk").world;
    tells(desk, "greeter", KEYS, 1..=OF_EACH);
    wait::until("some of them", || (performed() > KEYS).then_some(()));
    let cable = network.machine("web-1");
    cable.cable(false);
    let before = performed();
    tells(desk, "greeter", KEYS, OF_EACH + 1..=2 * OF_EACH);
    let missed = || (connections(&network) < HOSTS.len()).then_some(());
    assert!(wait::look(BOUND, missed).is_some(), "the server does not miss it");
    // What the cut host had of a partition is given to the other one after 30 s.
    let other = wait::look(BOUND, || (performed() > before + KEYS).then_some(()));
    assert!(other.is_some(), "the other host performs nothing");
    cable.cable(true);
    tells(desk, "greeter", KEYS, 2 * OF_EACH + 1..=3 * OF_EACH);
    let all = wait::look(BOUND, || (performed() == 3 * KEYS * OF_EACH).then_some(()));
    assert!(all.is_some(), "{} are performed", performed());
    log.in_order();
}
