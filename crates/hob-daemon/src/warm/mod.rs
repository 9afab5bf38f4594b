//! What is known of programs and of the files that they are made from: how each is resolved, what
//! it loads, and whether what is warm is what a cold start would load.

pub(crate) mod fresh;
pub(crate) mod lesson;
pub(crate) mod programs;
pub(crate) mod resolutions;

use fresh::Fingerprints;
use programs::Programs;
use resolutions::Resolutions;

/// What is known of programs.
#[derive(Debug)]
pub(crate) struct Warm {
    pub(crate) programs: Programs,
    pub(crate) fresh: Fingerprints,
    pub(crate) resolutions: Resolutions,
}
