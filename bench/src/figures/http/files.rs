//! Static files beside nginx, on kept connections.

use std::path::Path;

use anyhow::Result;

use crate::Setting;
use crate::hob::Hob;
use crate::report::{Figure, Want};
use crate::stats;

use super::client::{Connections, Load, Page};
use super::server::Recipe;
use super::{fact, ours, take_turns, trusted};

/// Names, sizes, and how much of nginx's throughput is wanted.
const FILES: [(&str, usize, f64); 2] = [("1 KiB", 1 << 10, 0.7), ("100 KiB", 100 << 10, 0.9)];
const ROUNDS: usize = 10;
const REQUESTS: usize = 4096;
const WIDTH: usize = 16;

#[derive(Debug, Default)]
struct Measured {
    load: Load,
    cpu_us: f64,
}

pub(super) fn files(setting: &Setting, hob: &Hob, figure: &mut Figure) -> Result<()> {
    let folder = hob.folder("files")?;
    let root = folder.join("public");
    std::fs::create_dir_all(&root)?;
    for (name, size, _) in FILES {
        let text: String = format!("{name}\n").chars().cycle().take(size).collect();
        std::fs::write(root.join(size.to_string()), text)?;
    }
    let ours_at = trusted(hob, "hob, static", &folder, "[mount.\"/\"]\nstatic = \"public\"\n")?;
    let place = "sed \"s:LISTENS:$1:; s:ROOT:$2:\" \"$3\" >nginx.run && exec \"$4\" -p \"$PWD\" -c \"$PWD/nginx.run\" -g 'daemon off;'";
    let conf = ours(setting, "nginx.conf");
    let root = root.display().to_string();
    // Where packages put it, of which a user's PATH may know nothing.
    let places = ["/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/sbin/nginx"];
    let nginx = places.into_iter().find(|path| Path::new(path).exists());
    if nginx.is_none() {
        crate::say("nginx: not installed : apt-get install nginx");
    }
    let nginx = nginx.map(|nginx| {
        let words = ["sh", "-c", place, "sh", "PORT", &root, &conf, nginx];
        Recipe::new("nginx 2", "nginx", &words)
    });
    let recipes: Vec<Recipe> = [Some(ours_at), nginx].into_iter().flatten().collect();
    let mut measured: Vec<[Measured; FILES.len()]> =
        recipes.iter().map(|_| Default::default()).collect();
    let rounds = setting.rounds(ROUNDS);
    take_turns("http, static", rounds, recipes.len(), |at| {
        for (file, (name, size, _)) in FILES.into_iter().enumerate() {
            let mut recipe = recipes[at].clone();
            recipe.page = Page::new(&format!("/{size}"), name.as_bytes());
            let server = recipe.start(&folder, &hob.environment())?;
            server.ask(4, Connections::Kept, 256)?;
            let (load, cpu_us) = server.ask_timed(WIDTH, Connections::Kept, REQUESTS)?;
            measured[at][file].load.add(load);
            measured[at][file].cpu_us += cpu_us;
        }
        Ok(())
    })?;
    for (file, (size, _, want)) in FILES.into_iter().enumerate() {
        for (recipe, measured) in recipes.iter().zip(&measured) {
            let (name, measured) = (recipe.name, &measured[file]);
            let count = measured.load.us.len() as f64;
            fact(figure, &format!("{name}, {size}: requests a second"), measured.load.throughput());
            fact(figure, &format!("{name}, {size}: p50 in us"), stats::median(&measured.load.us));
            let cpu = measured.cpu_us / count;
            fact(figure, &format!("{name}, {size}: processor time a request in us"), cpu);
        }
        if let [ours, nginx] = &measured[..] {
            let ratio = ours[file].load.throughput() / nginx[file].load.throughput();
            let name = format!("static {size}: throughput over nginx, kept connections");
            figure.target(&name, Want::AtLeast(want), ratio);
        }
    }
    Ok(())
}
