//! How actors are named between processes: a **node** is one system, by a number that no other
//! has; in it, an actor is known by the number under which it was first told to somebody.
//!
//! Invariants: a number stands for one actor for ever, so a message to an ended one finds nobody;
//! an actor of another node has one address here, however often it is named.

use std::any::TypeId;
use std::cell::RefCell;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::{Arc, Weak};

use super::tokens::Tokens;
use super::wire::{Decoder, Encoder, Schema, Wire, WireError};
use crate::api::actor::Actor;
use crate::api::address::Address;
use crate::memory::parcel::Slot;
use crate::memory::when::Place;
use crate::remote::Far;
use crate::runtime::mail::Mail;
use crate::runtime::mailbox::Mailbox;
use crate::shard::Shard;

/// How many numbers are given before those of ended actors are taken back for the first time.
const SWEEP_FIRST: usize = 1024;

/// What encoding and decoding need beside bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Along<'a> {
    pub(crate) names: &'a Names,
    pub(crate) shard: &'a Shard,
    /// The link that it comes from or goes to.
    pub(crate) link: u32,
}

/// By what others know an actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Name {
    pub(crate) node: u64,
    pub(crate) actor: u64,
}

/// An actor of this system, as others were told of it.
#[derive(Debug)]
struct Told {
    place: Place,
    slot: Slot,
    mailbox: Weak<Mailbox>,
}

/// An actor of another one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    pub(crate) node: u64,
    pub(crate) actor: u64,
    pub(crate) of_type: TypeId,
    /// The link over which it was named first: who can introduce us to its node.
    pub(crate) via: u32,
}

#[derive(Debug)]
struct Tables {
    told: Tokens<Told>,
    told_by: HashMap<(Place, Slot), u64>,
    sweep_at: usize,
    known: Vec<Known>,
    known_by: HashMap<Name, (Slot, Arc<Mailbox>)>,
    /// The addresses that stand for actors of other nodes, by the slots that they have here.
    far_by: HashMap<Slot, u32>,
}

/// The names that one system has given and learnt.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) node: u64,
    /// The place of the shard to which the addresses of others belong.
    pub(crate) place: Place,
    tables: RefCell<Tables>,
}

impl Names {
    pub(crate) fn new(node: u64, place: Place) -> Names {
        let tables = Tables {
            told: Tokens::default(),
            told_by: HashMap::new(),
            sweep_at: SWEEP_FIRST,
            known: Vec::new(),
            known_by: HashMap::new(),
            far_by: HashMap::new(),
        };
        Names { node, place, tables: RefCell::new(tables) }
    }

    /// The actor that others mean by this number.
    #[inline]
    pub(crate) fn told(&self, actor: u64) -> Option<(Place, Slot)> {
        self.tables.borrow().told.get(actor).map(|told| (told.place, told.slot))
    }

    /// Its mailbox, while it lives.
    pub(crate) fn mailbox(&self, actor: u64) -> Option<Arc<Mailbox>> {
        self.tables.borrow().told.get(actor)?.mailbox.upgrade()
    }

    /// The actor that a slot of ours stands for.
    #[inline]
    pub(crate) fn known(&self, far: Far) -> Option<Known> {
        self.tables.borrow().known.get(usize::try_from(far.actor).ok()?).copied()
    }

    /// The name by which others know an address.
    pub(crate) fn name<A>(&self, address: &Address<A>) -> Name {
        let tables = &mut *self.tables.borrow_mut();
        if address.place == self.place
            && let Some(known) = tables.far_by.get(&address.slot)
        {
            let known = tables.known[*known as usize];
            return Name { node: known.node, actor: known.actor };
        }
        let key = (address.place, address.slot);
        if let Some(told) = tables.told_by.get(&key) {
            return Name { node: self.node, actor: *told };
        }
        if tables.told.count() >= tables.sweep_at {
            tables.sweep();
        }
        let mailbox = Arc::downgrade(&address.mailbox);
        let told = tables.told.open(Told { place: address.place, slot: address.slot, mailbox });
        tables.told_by.insert(key, told);
        Name { node: self.node, actor: told }
    }

    /// The address that a name stands for.
    pub(crate) fn address<A: Actor>(
        &self,
        name: Name,
        shard: &Shard,
        via: u32,
    ) -> Result<Address<A>, WireError> {
        let Name { node, actor } = name;
        if node == self.node {
            let (place, slot) = self.told(actor).ok_or(WireError::Unreachable)?;
            let mailbox = self.mailbox(actor).ok_or(WireError::Unreachable)?;
            return Ok(Address { place, slot, mailbox, actor: PhantomData });
        }
        let tables = &mut *self.tables.borrow_mut();
        let (slot, mailbox) = match tables.known_by.get(&name) {
            Some(known) => known.clone(),
            None => {
                let number = u32::try_from(tables.known.len()).map_err(|_| WireError::Long)?;
                let far = Far { peer: via, actor: u64::from(number) };
                let address = shard.adopt::<A>(far, Mail::default());
                let (slot, mailbox) = (address.slot, address.mailbox);
                tables.known.push(Known { node, actor, of_type: TypeId::of::<A>(), via });
                tables.known_by.insert(name, (slot, Arc::clone(&mailbox)));
                tables.far_by.insert(slot, number);
                (slot, mailbox)
            }
        };
        Ok(Address { place: self.place, slot, mailbox, actor: PhantomData })
    }
}

impl Tables {
    /// Takes back the numbers of actors that have ended.
    fn sweep(&mut self) {
        for token in self.told.of(|told| told.mailbox.strong_count() == 0) {
            if let Some(told) = self.told.close(token) {
                self.told_by.remove(&(told.place, told.slot));
            }
        }
        self.sweep_at = (self.told.count() * 2).max(SWEEP_FIRST);
    }
}

impl Wire for Name {
    fn describe(schema: &mut Schema) {
        <(u64, u64)>::describe(schema);
    }

    fn encode(&self, out: &mut Encoder<'_>) {
        self.node.encode(out);
        self.actor.encode(out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Name, WireError> {
        Ok(Name { node: u64::decode(input)?, actor: u64::decode(input)? })
    }
}

impl<A: Actor> Wire for Address<A> {
    fn describe(schema: &mut Schema) {
        // The last part of the path: two programs may have one actor under two paths.
        let path = std::any::type_name::<A>();
        let name = path.rsplit("::").next().unwrap_or(path);
        schema.add("address of ");
        schema.add(name);
    }

    fn encode(&self, out: &mut Encoder<'_>) {
        let none = Name { node: 0, actor: 0 };
        out.along.map_or(none, |along| along.names.name(self)).encode(out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Address<A>, WireError> {
        let name = Name::decode(input)?;
        let along = input.along.ok_or(WireError::Unreachable)?;
        along.names.address(name, along.shard, along.link)
    }
}
