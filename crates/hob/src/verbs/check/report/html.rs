//! The report for people: one page with the verdict, the matrix, and each failure with what was
//! asked and answered.

use super::{
    Counts, Failure, Matrix, Ran, causes, code_word, compared, extent, failures, many, title,
};
use crate::show::page::Page;
use crate::show::units::{Micro, duration};
use hob_check::Earlier;
use hob_check::State;
use hob_check::What;

/// A browser has to lay them all out.
const ROWS_MAX: usize = 2_000;
const FAILURES_MAX: usize = 200;

/// The whole page.
pub(super) fn page(all: &[Ran]) -> String {
    let titles: Vec<_> = all.iter().map(title).collect();
    let mut page = Page::new(&format!("Checks: {}", titles.join(", ")));
    for ran in all {
        head(&mut page, ran);
        matrix(&mut page, ran);
        let failures = failures(&ran.plan, &ran.found);
        if !failures.is_empty() {
            page.raw("<h2>What did not pass</h2>\n");
        }
        for failure in failures.iter().take(FAILURES_MAX) {
            failed(&mut page, ran, failure);
        }
        more(&mut page, failures.len(), FAILURES_MAX, "failure");
    }
    page.end()
}

fn head(page: &mut Page, ran: &Ran) {
    page.raw("<h1>").text(title(ran)).raw("</h1>\n<p class=\"soft\">");
    if ran.plan.base.is_some() {
        page.text(&ran.file).raw(" · ");
    }
    page.text(extent(ran)).raw(" · ").text(machine()).raw("</p>\n<ul class=\"counts\">\n");
    let counts = Counts::new(&ran.found);
    for (count, class, word) in [
        (counts.failed, "error", "failed"),
        (counts.slow, "warning", "too slow"),
        (counts.not_run, "left", "not run"),
        (counts.passed, "ok", "passed"),
    ] {
        if count > 0 {
            page.raw("<li><b>").text(count).raw("</b><i class=\"").raw(class).raw("\"></i>");
            page.raw(word).raw("</li>\n");
        }
    }
    page.raw("</ul>\n");
    if let Some(earlier) = &ran.earlier {
        page.raw("<h2>Runs</h2>\n");
        strip(page, ran, earlier);
    }
    let compared = compared(ran);
    if !compared.is_empty() {
        page.raw("<p>");
    }
    for (at, (bad, words)) in compared.iter().enumerate() {
        page.raw(if at > 0 { " · " } else { "" });
        page.raw(if *bad { "<b class=\"word warning\">" } else { "<span>" }).text(words);
        page.raw(if *bad { "</b>" } else { "</span>" });
    }
    page.raw("\n");
    if ran.plan.cells.is_empty() {
        page.raw("<p>Nothing was checked: no check is left.</p>\n");
    }
}

/// The machine that has asked: times of two machines do not compare.
fn machine() -> String {
    let system = rustix::system::uname();
    let name = system.nodename().to_string_lossy().into_owned();
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    let processors = many(processors, "processor").replace("0 processors", "? processors");
    format!("from {name}, {processors}, {}", system.machine().to_string_lossy())
}

/// The last runs and this one, a bar each: as high as all its cells were slow, in the colour of what
/// did not pass.
fn strip(page: &mut Page, ran: &Ran, earlier: &Earlier) {
    let counts = Counts::new(&ran.found);
    let mut bars: Vec<(String, f64, usize, usize)> = Vec::new();
    for (run, level) in earlier.runs.iter().zip(&earlier.levels) {
        let all = run.passed + run.failed + run.slow + run.not_run;
        let title = format!("run {}, {}: {} of {all} passed", run.number, run.at, run.passed);
        bars.push((title, *level, run.failed + run.not_run, run.slow));
    }
    let title = format!("this run: {}", counts.verdict());
    bars.push((title, earlier.alike.unwrap_or(1.0), counts.failed + counts.not_run, counts.slow));
    page.raw("<figure class=\"strip\"><svg role=\"img\" viewBox=\"0 0 ").text(bars.len() * 24);
    page.raw(" 60\" aria-label=\"The last runs, and this one\">\n");
    for (at, (title, level, failed, slow)) in bars.iter().enumerate() {
        // Half as high is usual; from a quarter of the usual time to its double and more.
        let height = (level.clamp(0.25, 2.0) * 28.0).round();
        let class = match (failed, slow) {
            (0, 0) => "ok",
            (0, _) => "warning",
            (_, _) => "error",
        };
        page.raw("<rect class=\"").raw(class).raw("\" width=\"18\" x=\"").text(at * 24 + 3);
        page.raw("\" y=\"").text(60.0 - height).raw("\" height=\"").text(height).raw("\"><title>");
        page.text(title).raw("</title></rect>\n");
    }
    page.raw("</svg><figcaption class=\"soft\">The last runs, this one at the right. A bar is as high as \
              all checks together were slow; its colour is that of the worst.</figcaption></figure>\n");
}

fn matrix(page: &mut Page, ran: &Ran) {
    let (plan, matrix) = (&ran.plan, Matrix::new(&ran.plan));
    if matrix.checks.is_empty() {
        return;
    }
    page.raw("<h2>Checks</h2>\n<div class=\"wide\"><table class=\"matrix\">\n<thead><tr><th></th>");
    for profile in &matrix.profiles {
        page.raw("<th>").text(&plan.profiles[*profile].name).raw("</th>");
    }
    page.raw("</tr></thead>\n<tbody>\n");
    for check in matrix.checks.iter().take(ROWS_MAX) {
        page.raw("<tr><th>").text(&plan.checks[*check].name).raw("</th>");
        let cells = matrix.profiles.iter().filter_map(|profile| matrix.cell(*check, *profile));
        let both = cells.flat_map(|at| [ran.found.cells[at].median_us(), last_us(ran, at)]);
        let longest = both.flatten().max();
        for profile in &matrix.profiles {
            let Some(at) = matrix.cell(*check, *profile) else {
                page.raw("<td class=\"none\"></td>");
                continue;
            };
            page.raw("<td data-as=\"").attribute(&plan.profiles[*profile].name).raw("\">");
            cell(page, ran, *check, at, longest.unwrap_or(0));
            page.raw("</td>");
        }
        page.raw("</tr>\n");
    }
    page.raw("</tbody>\n</table></div>\n");
    more(page, matrix.checks.len(), ROWS_MAX, "check");
    page.raw("<p class=\"soft\">Times are medians. A bar is as long as the cell's part of the longest of its row; \
         the mark on it is the run before.</p>\n");
}

/// A cell: the code, the time, and a bar.
fn cell(page: &mut Page, ran: &Ran, check: usize, at: usize, longest_us: u64) {
    let done = &ran.found.cells[at];
    let (class, bar) = match &done.state {
        State::NotRun(why) => {
            page.raw("<span class=\"word cancelled\" title=\"").attribute(why);
            page.raw("\">not run</span>");
            return;
        }
        State::Passed => ("plain", "ok"),
        State::Failed => ("word error", "error"),
        State::Slow => ("word warning", "warning"),
    };
    let took_us = done.median_us();
    let took = took_us.map_or("?".to_owned(), |us| duration(us, Micro::Sign));
    page.raw("<span class=\"").raw(class).raw("\" title=\"");
    page.attribute(causes(&ran.plan, &ran.found, at).join("; ")).raw("\">");
    page.text(code_word(&ran.plan, check, done)).raw(" <span class=\"figure\">").text(took);
    page.raw(if bar == "ok" { "</span></span>" } else { " ✗</span></span>" });
    // In thousandths; nothing is so short that it cannot be seen.
    let part = u128::from(took_us.unwrap_or(0)) * 1000 / u128::from(longest_us.max(1));
    page.raw("<svg class=\"bar\" viewBox=\"0 0 1000 6\" preserveAspectRatio=\"none\">");
    page.raw("<rect class=\"").raw(bar).raw("\" height=\"6\" width=\"").text(part.clamp(8, 1000));
    page.raw("\"/>");
    if let Some(us) = last_us(ran, at) {
        let part = u128::from(us) * 1000 / u128::from(longest_us.max(1));
        page.raw("<rect class=\"last\" height=\"6\" width=\"12\" x=\"").text(part.min(988));
        page.raw("\"><title>the run before: ")
            .text(duration(us, Micro::Sign))
            .raw("</title></rect>");
    }
    page.raw("</svg>");
}

/// What the cell took in the run before that has it.
fn last_us(ran: &Ran, at: usize) -> Option<u64> {
    ran.earlier.as_ref()?.last_us.get(at).copied().flatten()
}

fn failed(page: &mut Page, ran: &Ran, failure: &Failure) {
    let (class, label) = match ran.found.cells[failure.cell].state {
        State::NotRun(_) => ("word cancelled", "not run"),
        State::Slow => ("word warning", "too slow"),
        State::Failed | State::Passed => ("word error", "failed"),
    };
    page.raw("<section class=\"failure\">\n<h3><span class=\"").raw(class).raw("\">").raw(label);
    page.raw("</span> ").text(failure.title(&ran.plan, " · ")).raw("</h3>\n<ul>\n");
    for cause in &failure.causes {
        page.raw("<li>").text(cause).raw("</li>\n");
    }
    page.raw("</ul>\n<p class=\"soft\">asked</p>\n<pre>").text(&failure.asked).raw("</pre>\n");
    if let Some(curl) = &failure.curl {
        page.raw("<p class=\"soft\">the same with curl</p>\n<pre>").text(curl).raw("</pre>\n");
    }
    let done = &ran.found.cells[failure.cell];
    if let Some(answer) = &done.answer {
        let what = match ran.plan.checks[failure.check].what {
            What::Request(_) => "answered with status",
            What::Run { .. } => "printed, with exit code",
        };
        let code = done.code.map_or("---".to_owned(), |code| code.to_string());
        page.raw("<p class=\"soft\">").raw(what).raw(" ").text(code);
        page.raw(if answer.is_empty() { ", and nothing" } else { "" }).raw("</p>\n");
        if !answer.is_empty() {
            page.raw("<pre>").text(answer).raw("</pre>\n");
        }
    }
    page.raw("</section>\n");
}

fn more(page: &mut Page, all: usize, shown: usize, what: &str) {
    if all > shown {
        let more = many(all - shown, &format!("more {what}"));
        page.raw("<p class=\"soft\">and ").text(more).raw("; the JSON report has all</p>\n");
    }
}
