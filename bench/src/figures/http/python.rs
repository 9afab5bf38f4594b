//! Apps of Python beside servers of Python.

use anyhow::Result;

use crate::Setting;
use crate::hob::Hob;
use crate::report::{Figure, Want};
use crate::venv;

use super::server::Recipe;
use super::{Measured, WIDTHS, hob_serve, ours, sides, told};

/// One page by WSGI and by ASGI.
pub(super) fn python(setting: &Setting, hob: &Hob, figure: &mut Figure) -> Result<()> {
    let env = venv::make(&setting.root, "http", "requirements-http.txt")?;
    let app = ours(setting, "app.py");
    let terms = "isolation = \"prefork\"\nworkers = { min = 2, max = 2 }";
    let bound = "127.0.0.1:PORT";
    let of = |name: &'static str, words: &[&str]| {
        let mut recipe = Recipe::new(name, "", words);
        recipe.words[0] = env.join("bin").join(words[0]).into_os_string();
        recipe
    };
    let folder = setting.root.join("bench/http").display().to_string();
    let granian = ["granian", "--no-ws", "--workers", "2", "--host", "127.0.0.1", "--port", "PORT"];
    let with = |interface: &str, target: &str| {
        let mut words: Vec<&str> = granian.to_vec();
        let interface = ["--interface", interface, "--working-dir", &folder, target];
        words.extend(interface);
        words.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let (by_wsgi, by_asgi) = (with("wsgi", "app:app"), with("asgi", "app:asgi"));
    let granian =
        |name, all: &[String]| of(name, &all.iter().map(String::as_str).collect::<Vec<_>>());
    // Its processes are ended by SIGTERM only with `die-on-term`.
    let uwsgi = "uwsgi --master --die-on-term --disable-logging --processes 2 --module app:app";
    let mut uwsgi: Vec<&str> = uwsgi.split(' ').collect();
    uwsgi.extend(["--http-socket", bound, "--chdir", &folder]);
    let uwsgi = of("uwsgi 2", &uwsgi);
    let wsgi = [
        hob_serve(hob, "hob, WSGI", "wsgi", &format!("{app}:app"), terms)?,
        of("gunicorn 2", &["gunicorn", "-w", "2", "-b", bound, "--chdir", &folder, "app:app"]),
        uwsgi,
        granian("granian 2, WSGI", &by_wsgi),
    ];
    let asgi = [
        hob_serve(hob, "hob, ASGI", "asgi", &format!("{app}:asgi"), terms)?,
        of(
            "uvicorn 2",
            &[
                "uvicorn",
                "--workers",
                "2",
                "--port",
                "PORT",
                "--no-access-log",
                "--app-dir",
                &folder,
                "app:asgi",
            ],
        ),
        granian("granian 2, ASGI", &by_asgi),
    ];
    for (interface, recipes) in [("WSGI", wsgi.to_vec()), ("ASGI", asgi.to_vec())] {
        let sides = sides(setting, hob, &format!("http, {interface}"), &recipes)?;
        told(figure, &sides);
        let best = |of: fn(&Measured) -> f64| {
            let others = sides[1..].iter().map(|side| of(&side.measured[WIDTHS.len() - 1]));
            others.fold(0.0, f64::max)
        };
        let throughput = |measured: &Measured| measured.stream.throughput();
        let ratio = throughput(&sides[0].measured[WIDTHS.len() - 1]) / best(throughput);
        let name = format!("{interface}: throughput over the best other, at 64");
        figure.target(&name, Want::AtLeast(1.0), ratio);
    }
    Ok(())
}
