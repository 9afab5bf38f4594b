//! The row of programs that are their own runtime: linked with `hob-worker`, they host handlers.

use crate::exec;
use crate::table::{Handlers, Runtime, RuntimeId};

pub(crate) const ROW: Runtime = Runtime {
    id: RuntimeId::Native,
    name: "native",
    title: "a program linked with hob-worker",
    handlers: Handlers::Program,
    apps: &[],
    ..exec::ROW
};
