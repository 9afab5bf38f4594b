//! The unit of systemd that runs the daemon: its text, and the one limit that it must share with
//! its callers.
//!
//! `xtask dist` packs the same text for the path of a package.

use std::path::Path;

/// The unit, with words in `@` that are replaced.
const UNIT: &str = include_str!("hob.service");
/// Variables of the daemon that it takes on from whoever sets it up.
pub(super) const VARIABLES: [&str; 4] =
    ["HOB_DIR", "HOB_MEMORY_MB", "HOB_RECEIPTS", "XDG_STATE_HOME"];
/// The file of a control group that bounds its processes.
const PROCESSES: &str = "pids.max";

/// The unit's text. `environment` has the variables that it sets, `tasks` what `TasksMax` is to be:
/// `None` leaves it to the manager.
pub(super) fn text(
    mark: &str,
    hob: &str,
    environment: &[(&str, &str)],
    tasks: Option<&str>,
) -> String {
    let lines: String = environment
        .iter()
        .map(|(name, value)| format!("Environment={}\n", quoted(&format!("{name}={value}"))))
        .collect();
    let tasks = match tasks {
        Some(number) => format!(
            "# The number of processes is a limit, too, and is that of the place where `hob setup` \
             was typed.\nTasksMax={number}\n"
        ),
        None => String::new(),
    };
    UNIT.replace("@MARK@", mark)
        .replace("@HOB@", &quoted(&hob.replace('$', "$$")))
        .replace("@ENVIRONMENT@", &lines)
        .replace("@TASKS@", &tasks)
}

/// A word as systemd reads it: nothing in it ends it, and no `%` stands for something else.
fn quoted(word: &str) -> String {
    let word = word.replace('%', "%%");
    if word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-+=:@%$".contains(&byte)) {
        return word;
    }
    format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
}

/// How many processes the caller's control group may have, read off its `/proc/PID/cgroup`: the
/// smallest bound on the way up, and `infinity` if there is none. `None` where groups are of the old
/// kind, or cannot be read.
pub(super) fn tasks(group: &str, root: &Path) -> Option<String> {
    if group.contains(":pids:") {
        return None;
    }
    let path = group.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let mut least: Option<u64> = None;
    for folder in Path::new(path).ancestors() {
        // The user's own slice bounds the unit as well.
        if folder.file_name().is_some_and(|name| name.as_encoded_bytes().ends_with(b".slice")) {
            break;
        }
        // The root has no such file.
        let bound = std::fs::read_to_string(root.join(folder).join(PROCESSES)).unwrap_or_default();
        if let Ok(number) = bound.trim().parse() {
            least = Some(least.map_or(number, |least| least.min(number)));
        }
    }
    root.join(path).is_dir().then(|| match least {
        Some(number) => number.to_string(),
        None => "infinity".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_word_of_systemds_whatever_is_in_it() {
        let unit = text("m", "/opt/a b/$x/50%/\"q\"/hob", &[("HOB_DIR", "/run/a b")], Some("7"));
        assert!(unit.contains("ExecStart=\"/opt/a b/$$x/50%%/\\\"q\\\"/hob\" daemon\n"), "{unit}");
        assert!(unit.contains("\nEnvironment=\"HOB_DIR=/run/a b\"\nRestart="), "{unit}");
        assert!(unit.contains("\nTasksMax=7\n"), "{unit}");
        let plain = text("m", "/usr/bin/hob", &[], None);
        assert!(plain.contains("\nExecStart=/usr/bin/hob daemon\n"), "{plain}");
        assert!(!plain.contains("TasksMax") && !plain.contains('@'), "{plain}");
    }

    #[test]
    fn the_number_of_processes_is_the_least_below_the_users_slice() {
        let root = tempfile::tempdir().unwrap();
        let group = "user.slice/user-5.slice/user@5.service/app.slice/term.scope";
        let bound = |at: &str, number: &str| {
            std::fs::create_dir_all(root.path().join(at)).unwrap();
            std::fs::write(root.path().join(at).join(PROCESSES), number).unwrap();
        };
        bound("user.slice", "3\n");
        bound(group, "max\n");
        let found = |line: &str| tasks(line, root.path());
        assert_eq!(found(&format!("0::/{group}\n")).as_deref(), Some("infinity"));
        bound(group, "4915\n");
        assert_eq!(found(&format!("1:name=x:/y\n0::/{group}\n")).as_deref(), Some("4915"));
        assert_eq!(found("0::/not/there\n"), None);
        assert_eq!(found(&format!("4:pids:/x\n0::/{group}\n")), None);
    }
}
