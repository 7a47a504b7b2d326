use super::super::table::Operation;
pub(super) const ROWS: &[Operation] = &[];
