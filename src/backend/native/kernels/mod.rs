//! Kernels: a specification, a mapping and the geometry of its values become Rust source and
//! packed weights. Each file here has one kernel and its template.

mod concat;
mod conv;
mod conv_width;
mod deconv;
mod dense;
mod depthwise;
mod loops;
mod map;
mod matmul;
mod pool;
mod qconv;
mod qdense;
mod qdepthwise;
mod qmatmul;
mod qresult;
mod reorder;
mod resample;
mod share;
mod source;
mod table;
mod tiling;
mod window;
mod winograd;

pub use concat::concat;
pub use conv::{ConvGeometry, conv, conv_margins};
pub use conv_width::conv_width;
pub use deconv::{deconv, deconv_margins};
pub use dense::dense;
pub use depthwise::depthwise;
pub use loops::loops;
pub use map::map;
pub use matmul::matmul;
pub use pool::pool;
pub use qconv::{FOUR, qconv};
pub use qdense::qdense;
pub use qdepthwise::qdepthwise;
pub use qmatmul::{qmatmul, qmatmul_fits};
pub use reorder::reorder;
pub use resample::resample;
pub use share::{Share, Shares};
pub use source::{Kernel, KernelCtx, KernelError, Slot};
pub use table::table;
pub use window::{clear, slide};
pub use winograd::{has_winograd, weights_growth, winograd, winograd_side};
