//! A line of a table whose first column is a name and whose others are figures or words.

use super::style::Look;
use super::text::{Align, fit, fit_end, pad};

/// What stands between two columns.
pub(super) const GAP: &str = "  ";

/// The cells in columns of these widths, as many as the terminal has room for.
pub(super) fn line(
    cells: &[String],
    widths: &[usize],
    is_figure: impl Fn(usize) -> bool,
    look: &Look,
) -> String {
    let mut left = look.columns.unwrap_or(usize::MAX);
    let mut shown = Vec::with_capacity(cells.len());
    for (column, (text, width)) in cells.iter().zip(widths).enumerate() {
        // Half a figure would be a wrong one, so what has no room is left out.
        if left < *width {
            break;
        }
        left = left.saturating_sub(width + GAP.len());
        let align = if is_figure(column) { Align::Right } else { Align::Left };
        // The end of a path says more than its beginning.
        let is_path = column == 0 && text.contains('/');
        let cut = if is_path { fit_end } else { fit }(text, *width, look.charset);
        shown.push(pad(&cut, *width, align));
    }
    shown.join(GAP).trim_end().to_owned()
}
