//! Calls as a page: a list of them, and of each where its time went.

use hob_core::receipt::Receipt;
use hob_core::receipt::naming::Naming;
use hob_daemon::recorder::spans::{Rings, Span, Spans, What};

use super::Page;
use crate::show::clock::Clock;
use crate::show::entries::{Entry, FallbackLine, How};
use crate::show::reasons;
use crate::show::text::Charset;
use crate::show::trace;
use crate::show::units::{Micro, duration, size};
use crate::show::waterfall::short_outcome;

/// How deep spans are shown to lie at most.
const DEPTH_SHOWN: u8 = 6;

/// The whole page; the entries in the order in which they are given, with what the rings have of
/// them.
pub(crate) fn page(entries: &[Entry], rings: &Rings, clock: &Clock) -> String {
    let mut page = Page::new("Calls");
    let plural = if entries.len() == 1 { "" } else { "s" };
    page.raw("<h1>").text(entries.len()).raw(" call").raw(plural).raw("</h1>\n");
    page.raw("<p class=\"soft\">The newest is the last one. A bar is as long as the call took beside the ");
    page.raw(
        "longest of them.</p>\n<div class=\"wide\"><table class=\"matrix calls\">\n<thead><tr>\n",
    );
    page.raw("<th>program</th><th>began</th><th>call</th><th>how</th><th>outcome</th>");
    page.raw("<th>took</th></tr></thead>\n<tbody>\n");
    let totals = entries.iter().map(|entry| match entry {
        Entry::Receipt(receipt) => receipt.total_us,
        Entry::Fallback(_) => 0,
    });
    let longest_us = totals.max().unwrap_or(0);
    for entry in entries {
        match entry {
            Entry::Receipt(receipt) => row(&mut page, receipt, longest_us, clock),
            Entry::Fallback(line) => fallback(&mut page, line, clock),
        }
    }
    page.raw("</tbody>\n</table></div>\n");
    for entry in entries {
        if let Entry::Receipt(receipt) = entry {
            waterfall(&mut page, receipt, &rings.of(receipt), clock);
        }
    }
    page.end()
}

fn row(page: &mut Page, receipt: &Receipt, longest_us: u64, clock: &Clock) {
    let (how, good) = (How::of(receipt), receipt.outcome.went_well());
    page.raw("<tr><th>")
        .text(Naming::from(&receipt.program).title())
        .raw("</th><td data-as=\"began\">");
    page.text(clock.show(&receipt.at, Charset::Unicode)).raw("</td><td data-as=\"call\">");
    page.text(receipt.call).raw("</td><td data-as=\"how\"><span class=\"word ").raw(class(how));
    page.raw("\" title=\"").attribute(meaning(&receipt.reason)).raw("\">").raw(how.word());
    page.raw(": ").text(&receipt.reason).raw("</span></td><td data-as=\"outcome\"><span class=\"");
    page.raw(if good { "plain" } else { "word error" }).raw("\">");
    page.text(short_outcome(&receipt.outcome, Charset::Unicode));
    page.raw("</span></td><td data-as=\"took\">").text(duration(receipt.total_us, Micro::Sign));
    let whole = Stretch { from_us: 0, us: receipt.total_us, of_us: longest_us };
    bar(page, whole, if good { "ok" } else { "error" });
    page.raw("</td></tr>\n");
}

/// A call that no daemon took: there is nothing to tell of its time.
fn fallback(page: &mut Page, line: &FallbackLine, clock: &Clock) {
    page.raw("<tr><th>").text(&line.program.name).raw("</th><td data-as=\"began\">");
    page.text(clock.show(&line.at, Charset::Unicode)).raw("</td><td class=\"none\"></td>");
    page.raw("<td data-as=\"how\"><span class=\"word warning\">cold: ").text(&line.reason);
    page.raw("</span></td><td data-as=\"outcome\">not seen by a daemon</td><td class=\"none\"></td></tr>\n");
}

/// The phases of a call, each where it was on the call's time, and beneath each the spans that began
/// in it.
fn waterfall(page: &mut Page, receipt: &Receipt, spans: &Spans, clock: &Clock) {
    page.raw("<section class=\"failure\">\n<h3>").text(Naming::from(&receipt.program).title());
    page.raw(" <span class=\"soft\">call ").text(receipt.call).raw(" · ");
    page.text(clock.show(&receipt.at, Charset::Unicode)).raw(" · ").raw(How::of(receipt).word());
    page.raw(": ").text(&receipt.reason).raw(" · ").text(&receipt.isolation).raw(" · ");
    page.text(duration(receipt.total_us, Micro::Sign)).raw("</span></h3>\n");
    let why = meaning(&receipt.reason);
    if !why.is_empty() {
        page.raw("<p class=\"soft\">").text(why).raw("</p>\n");
    }
    page.raw("<table class=\"phases\">\n");
    for (number, phase) in receipt.phases.iter().enumerate() {
        page.raw("<tr><td>").text(&phase.name).raw("</td><td class=\"figure\">");
        page.text(duration(phase.us, Micro::Sign)).raw("</td><td>");
        let stretch = Stretch { from_us: phase.start_us, us: phase.us, of_us: receipt.total_us };
        bar(page, stretch, if phase.name == "main" { "ok" } else { "busy" });
        page.raw("</td></tr>\n");
        let beneath = spans.spans.iter();
        for span in beneath.filter(|span| trace::place(&receipt.phases, span) == number) {
            self::span(page, span, receipt.total_us);
        }
    }
    page.raw("</table>\n");
    if let Some(dropped) = trace::dropped(spans) {
        page.raw("<p class=\"soft\">").text(dropped).raw("</p>\n");
    }
    if let Some(usage) = receipt.usage {
        let [user, system] = [usage.user_us, usage.system_us].map(|us| duration(us, Micro::Sign));
        page.raw("<p class=\"soft\">processor ").text(user).raw(" user, ").text(system);
        page.raw(" system · memory ").text(size(usage.peak_kib)).raw(" at its peak</p>\n");
    }
    page.raw("</section>\n");
}

/// A span: its bar, and below it for whom it waited.
fn span(page: &mut Page, span: &Span, of_us: u64) {
    page.raw("<tr class=\"soft\"><td>");
    let depth = if let What::Own { depth, .. } = span.what { depth } else { 0 };
    (0..=depth.min(DEPTH_SHOWN)).for_each(|_| _ = page.raw("· "));
    page.text(span.what.name()).raw("</td><td class=\"figure\">");
    page.text(duration(span.us, Micro::Sign)).raw("</td><td>");
    bar(page, Stretch { from_us: span.start_us, us: span.us, of_us }, "busy");
    page.raw("</td></tr>\n");
    let text = trace::text(span, Micro::Sign);
    if !text.is_empty() {
        page.raw("<tr class=\"soft\"><td></td><td></td><td>").text(text).raw("</td></tr>\n");
    }
}

/// A stretch of a time.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    from_us: u64,
    us: u64,
    of_us: u64,
}

/// A bar, in thousandths; nothing that took time is so short that it cannot be seen.
fn bar(page: &mut Page, stretch: Stretch, class: &'static str) {
    if stretch.us == 0 {
        return;
    }
    let part = |us: u64| {
        let part = u128::from(us) * 1000 / u128::from(stretch.of_us.max(1));
        u64::try_from(part).unwrap_or(1000).min(1000)
    };
    let width = part(stretch.us).max(4);
    page.raw(
        "<svg class=\"bar\" viewBox=\"0 0 1000 6\" preserveAspectRatio=\"none\"><rect class=\"",
    );
    page.raw(class).raw("\" height=\"6\" x=\"").text(part(stretch.from_us).min(1000 - width));
    page.raw("\" width=\"").text(width).raw("\"/></svg>");
}

fn class(how: How) -> &'static str {
    match how {
        How::Warm | How::Front | How::Elsewhere | How::Hooks => "ok",
        How::Cold => "warning",
        How::NotRun => "error",
    }
}

/// What a reason code means; nothing for one of a newer build.
fn meaning(reason: &str) -> &'static str {
    reasons::of_receipt(reason).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use hob_daemon::recorder::spans::{Coverage, Held};

    use super::*;
    use crate::show::samples;

    #[test]
    fn every_call_is_there_with_its_phases_and_nothing_is_obeyed() {
        let mut entries = samples::all();
        let mut named = samples::warm();
        named.program.name = "<script>\u{1b}".to_owned();
        named.program.target = String::new();
        let phases = named.phases.len();
        entries.push(Entry::Receipt(Box::new(named)));
        let page = page(&entries, &Rings::default(), &samples::clock());
        assert!(!page.contains("<script"), "{page}");
        assert!(page.contains("<th>&lt;script&gt;\\x1b</th>"), "{page}");
        let rows = page.matches("<tr><th>").count();
        assert_eq!(rows, entries.len(), "{page}");
        let last = page.rsplit("<section").next().unwrap();
        assert_eq!(last.matches("<tr><td>").count(), phases, "{last}");
        let receipts = entries.iter().filter(|entry| matches!(entry, Entry::Receipt(_)));
        assert_eq!(page.matches("<section").count(), receipts.count(), "{page}");
    }

    #[test]
    fn spans_stand_beneath_the_phase_in_which_they_began() {
        let receipt = samples::warm();
        let what = What::Waited { holders: vec![Held::Call(7, None)], of: 1, then: Vec::new() };
        let spans = vec![Span { what, start_us: receipt.phases[1].start_us, us: 5 }];
        let mut page = Page::new("x");
        let spans = Spans { coverage: Coverage::Whole, spans, dropped: 3 };
        waterfall(&mut page, &receipt, &spans, &samples::clock());
        let page = page.end();
        let [before, behind] = page.split("· waited").collect::<Vec<_>>()[..] else { panic!() };
        let name = |number: usize| format!("<tr><td>{}<", receipt.phases[number].name);
        assert!(before.contains(&name(1)) && !before.contains(&name(2)), "{before}");
        assert!(behind.contains("for call 7 (all the while)"), "{behind}");
    }
}
