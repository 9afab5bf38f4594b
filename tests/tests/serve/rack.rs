//! Rack apps: the example that is shipped, with both of its isolations.

use std::path::Path;

use hob_tests::World;
use hob_tests::site::Site;

/// The files of the example, as a user would copy them.
fn example(world: &World) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/foolsgold");
    let copied = std::process::Command::new("cp")
        .args(["-r".as_ref(), from.join(".").as_os_str(), world.path("work").as_os_str()])
        .status();
    assert!(copied.unwrap().success());
    world.hob(&["trust"]).go().succeeded();
}

#[test]
fn the_example_serves_one_app_under_two_isolations_with_its_files_beside() {
    let world = World::new();
    example(&world);
    let site = Site::serve(&world, &["--config", "hob.toml"]);
    for mount in ["/fools-gold/shared-nothing", "/fools-gold/prefork"] {
        let answer = site.get(mount);
        assert_eq!(answer.status, 200, "{mount}: {answer:?}");
        assert!(answer.header("content-type").unwrap().starts_with("text/html"), "{answer:?}");
        let escaped = mount.replace('/', "&#x2F;");
        assert!(answer.text().contains(&escaped), "{}", answer.text());
        assert_eq!(site.ask("HEAD", mount, "", b"").body, b"");
    }
    let files: Vec<_> = std::fs::read_dir(world.path("work/public")).unwrap().flatten().collect();
    assert!(!files.is_empty());
    for file in files {
        let name = file.file_name().into_string().unwrap();
        let answer = site.get(&format!("/{name}"));
        assert_eq!(answer.body, std::fs::read(file.path()).unwrap(), "{name}");
    }
    site.stop();
}

#[test]
fn a_rack_app_shares_nothing_under_fork_and_its_process_under_prefork() {
    let world = World::new();
    world.file(
        "config.ru",
        "count = 0\nchance = Random.new\nrun ->(env) { count += 1\n \
         [200, {\"content-type\" => \"text/plain\"}, \
         [\"#{count} #{chance.rand} #{env['SCRIPT_NAME']}|#{env['PATH_INFO']}|#{env['rack.input'].read}\"]] }\n",
    );
    world.file(
        "hob.toml",
        "[mount.\"/alone\"]\nrack = \"config.ru\"\nisolation = \"fork\"\n\
         [mount.\"/kept\"]\nrack = \"config.ru\"\nworkers = 1\n",
    );
    world.hob(&["trust"]).go().succeeded();
    let site = Site::serve(&world, &[]);
    let alone: Vec<String> = (0..4).map(|_| site.get("/alone/x%20y").text()).collect();
    assert!(alone.iter().all(|text| text.starts_with("1 ")), "{alone:?}");
    assert!(alone.iter().all(|text| text.ends_with(" /alone|/x%20y|")), "{alone:?}");
    let mut distinct = alone.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), 4, "a random number came twice: {alone:?}");
    let kept: Vec<String> = (0..3).map(|_| site.ask("POST", "/kept", "", b"body").text()).collect();
    for (at, text) in kept.iter().enumerate() {
        assert!(text.starts_with(&format!("{} ", at + 1)), "{kept:?}");
        assert!(text.ends_with(" /kept||body"), "{kept:?}");
    }
    site.stop();
}
