//! What a kernel is made into.

use minijinja::Value;

use super::share::{Share, Shares};
use crate::backend::native::isa::{self, VectorTable};
use crate::backend::native::render::{RenderError, Renderer};
use crate::backend::native::spec::Conv;
use crate::device::Isa;
use crate::digest::Digest;
use crate::space::Mapping;

/// What every kernel is rendered with.
#[derive(Debug, Clone, Copy)]
pub struct KernelCtx<'a> {
    /// Templates.
    pub renderer: &'a Renderer,
    /// Instruction set that code is made for.
    pub isa: Isa,
    /// How its work is to be divided; a kernel that cannot be divided so does all of it.
    pub share: Share,
}

/// Rendered source and packed weights of one kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Kernel {
    /// Digest of the source: equal kernels are compiled once.
    pub digest: Digest,
    /// A module body that defines the function [`Kernel::symbol`].
    pub source: String,
    /// The function's parameters, in order.
    pub slots: Vec<Slot>,
    /// Packed weights and constants, little-endian; empty if it has none.
    pub weights: Vec<u8>,
    /// How its work is divided; `None` if a call does all of it.
    pub shares: Option<Shares>,
}

/// What a parameter of a kernel points to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// Element `(0, 0, 0, 0)` of the main input.
    Input,
    /// The packed weights.
    Weights,
    /// Element `(0, 0, 0, 0)` of the main output.
    Output,
    /// Element `(0, 0, 0, 0)` of the residual.
    Residual,
    /// The factors of the input channels.
    Scale,
    /// The means of the output channels.
    Pooled,
    /// Memory for that many f32 elements, free to use during the call. Calls for other units at the
    /// same time have the same.
    Scratch(usize),
    /// That many f32 zeros.
    Zeros(usize),
    /// Other operand: its first element.
    Operand(usize),
    /// What lies at that many bytes from the start of the packed weights.
    Constant(usize),
    /// Operand of plain loops, of any type: its first element.
    Source(usize),
    /// Constant operand of plain loops, at that many bytes from the start of the packed weights.
    Bytes(usize),
    /// Output of plain loops, of any type: its first element.
    Result(usize),
    /// Memory for that many bytes, free to use during the call, and not that of calls at the same
    /// time.
    Room(usize),
    /// The first unit of work that a call does, and the one after the last.
    First,
    /// See [`Slot::First`].
    End,
}

/// A mapping that a kernel cannot be made for.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The mapping does not fit the shapes, layouts or registers.
    #[error("mapping does not apply: {0}")]
    Unsupported(String),
    /// A parameter that the kernel needs is missing or of another type.
    #[error("mapping has no usable `{0}`")]
    Parameter(&'static str),
    /// The template failed.
    #[error(transparent)]
    Render(#[from] RenderError),
}

impl Slot {
    /// Returns the bytes that are free to use during the call, if it points to such.
    pub fn scratch_bytes(self) -> Option<usize> {
        match self {
            Self::Scratch(len) => Some(len * size_of::<f32>()),
            Self::Room(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Returns whether the kernel writes through the parameter.
    pub fn is_written(self) -> bool {
        matches!(
            self,
            Self::Output | Self::Pooled | Self::Scratch(_) | Self::Result(_) | Self::Room(_)
        )
    }
}

impl Kernel {
    /// Renders a template and names its function after what came out.
    pub(super) fn render(
        ctx: KernelCtx<'_>,
        template: &str,
        table: VectorTable,
        values: Value,
        slots: Vec<Slot>,
        weights: &[f32],
    ) -> Result<Self, KernelError> {
        let weights = weights.iter().flat_map(|weight| weight.to_le_bytes());
        let primitives = ctx.renderer.text(table.template);
        Self::render_with(ctx, template, table, primitives, values)
            .map(|text| Self::named(&text, slots, weights.collect()))
    }

    /// Renders a template that computes with integers, too.
    pub(super) fn render_integers(
        ctx: KernelCtx<'_>,
        template: &str,
        table: VectorTable,
        values: Value,
        slots: Vec<Slot>,
        weights: Vec<u8>,
    ) -> Result<Self, KernelError> {
        let templates = [table.template, table.integers.template, table.integers.dot];
        let primitives = templates
            .map(|template| ctx.renderer.text(template))
            .concat();
        Self::render_with(ctx, template, table, &primitives, values)
            .map(|text| Self::named(&text, slots, weights))
    }

    /// Renders the text of a kernel from primitives of an instruction set.
    fn render_with(
        ctx: KernelCtx<'_>,
        template: &str,
        table: VectorTable,
        primitives: &str,
        values: Value,
    ) -> Result<String, KernelError> {
        let primitives = [primitives, ctx.renderer.text("vector_math.rs")].concat();
        let context = minijinja::context! {
            c => values, isa => primitives, features => table.features, lanes => table.lanes,
            prelude => ctx.renderer.text("loops/prelude.rs"),
        };
        let mut text = ctx.renderer.render(template, context)?;
        if table.features.is_empty() {
            text = text.replace("#[target_feature(enable = \"\")]\n", "");
        }
        Ok(text)
    }

    /// Names the function of a source text, which it calls `KERNEL`, after the text.
    pub(super) fn named(text: &str, slots: Vec<Slot>, weights: Vec<u8>) -> Self {
        let digest = Digest::of_bytes("metainfer kernel v1", text.as_bytes());
        Self {
            digest,
            source: text.replace("KERNEL", &symbol(&digest)),
            slots,
            weights,
            shares: None,
        }
    }

    /// Says that the kernel takes the range of its work, as its last two parameters.
    pub(super) fn shared(mut self, shares: Option<Shares>) -> Self {
        if shares.is_some() {
            self.slots.extend([Slot::First, Slot::End]);
        }
        self.shares = shares;
        self
    }

    /// Returns the name of the kernel's function.
    pub fn symbol(&self) -> String {
        symbol(&self.digest)
    }

    /// Returns the type of each parameter.
    pub fn parameter_types(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.slots.iter().map(|slot| match slot {
            Slot::Result(_) | Slot::Room(_) => "*mut u8",
            Slot::Source(_) | Slot::Bytes(_) => "*const u8",
            Slot::First | Slot::End => "usize",
            slot if slot.is_written() => "*mut f32",
            _ => "*const f32",
        })
    }
}

impl KernelCtx<'_> {
    /// Returns the vector table of the mapping's `lanes`, or the widest.
    pub(super) fn table(&self, lanes: Option<i64>) -> Result<VectorTable, KernelError> {
        match lanes {
            None => Ok(isa::widest(self.isa)),
            Some(lanes) => isa::table(self.isa, lanes as usize).ok_or_else(|| {
                KernelError::Unsupported(format!("{} has no vectors of {lanes}", self.isa))
            }),
        }
    }

    /// Returns the widest vector table whose lanes divide every block of channels.
    pub(super) fn table_for(&self, blocks: &[usize]) -> Option<VectorTable> {
        isa::tables(self.isa)
            .iter()
            .copied()
            .find(|table| blocks.iter().all(|block| block.is_multiple_of(table.lanes)))
    }
}

/// Returns a number of a mapping that must be at least `least`.
pub(super) fn parameter(
    mapping: &Mapping,
    name: &'static str,
    least: i64,
) -> Result<usize, KernelError> {
    let value = mapping.int(name).filter(|&value| value >= least);
    value
        .map(|value| value as usize)
        .ok_or(KernelError::Parameter(name))
}

/// Returns the rows and columns of a mapping's tile, which is not larger than the output.
pub(super) fn tile(mapping: &Mapping, conv: &Conv) -> Result<[usize; 2], KernelError> {
    let [_, oh, ow] = conv.output;
    let columns = parameter(mapping, "tile_w", 0)?.clamp(1, ow);
    let rows = parameter(mapping, "tile_h", 0)?.clamp(1, oh);
    Ok([rows, columns])
}

/// Returns the refusal of a mapping.
pub(super) fn unsupported(why: &str) -> KernelError {
    KernelError::Unsupported(why.to_owned())
}

impl VectorTable {
    /// Refuses a tile that needs so many vectors if there are fewer registers.
    pub(super) fn expect_room(&self, vectors: usize) -> Result<(), KernelError> {
        if vectors > self.registers {
            return Err(unsupported(
                "the tile needs more vectors than there are registers",
            ));
        }
        Ok(())
    }
}

fn symbol(digest: &Digest) -> String {
    format!("k_{}", &digest.to_string()[..20])
}
