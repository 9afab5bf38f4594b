//! The row of programs that are their own runtime: linked with `hob-actor`, they host handlers.

use crate::exec;
use crate::table::{Handlers, Runtime, RuntimeId};

pub(crate) const ROW: Runtime = Runtime {
    id: RuntimeId::Native,
    name: "native",
    title: "a program linked with hob-actor",
    handlers: Handlers::Program,
    ..exec::ROW
};
