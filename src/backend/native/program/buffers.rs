//! The copies of each value, by layout, and who needs them when.

use std::collections::BTreeMap;

use crate::backend::native::layout::{Border, Geometry, Layout, dims4, is_flat};
use crate::graph::{DType, Graph, ValueId};

/// Index of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BufferId(pub(super) usize);

/// What holds a copy of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    /// Memory of its own in the arena.
    Arena,
    /// The memory of another buffer, same elements in the same order.
    Same(BufferId),
    /// An input of the model.
    Input(usize),
    /// An output of the model.
    Output(usize),
    /// A constant of the schedule, among the weights.
    Constant(usize),
}

/// One copy of a value.
#[derive(Debug, Clone)]
pub(super) struct ValueBuffer {
    pub(super) value: ValueId,
    pub(super) dims: [usize; 4],
    pub(super) dtype: DType,
    pub(super) layout: Layout,
    pub(super) border: Border,
    /// Whether it must stay dense: no border may be added.
    pub(super) exact: bool,
    pub(super) holder: Holder,
    pub(super) first: usize,
    pub(super) last: usize,
    /// How many rows it holds, border included, if not all.
    pub(super) window: Option<usize>,
}

/// All buffers of a program in the making.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    pub(super) all: Vec<ValueBuffer>,
    copies: BTreeMap<ValueId, Vec<BufferId>>,
}

/// What a kernel asks of a value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Want {
    /// That layout, with at least that border.
    Layout(Layout, Border),
    /// Any layout in memory of our own, in which blocks are multiples of so many channels.
    Vectors(usize, Layout),
    /// The copy that exists, whatever its layout; an input of the model as it is.
    Any,
    /// Dense and row-major.
    Dense,
}

impl Buffers {
    /// Adds a copy of a value that a step writes.
    pub(super) fn add(
        &mut self,
        graph: &Graph,
        value: ValueId,
        layout: Layout,
        holder: Holder,
        step: usize,
    ) -> BufferId {
        let dims = dims4(&graph.value(value).shape);
        let id = BufferId(self.all.len());
        let exact = !matches!(holder, Holder::Arena);
        self.all.push(ValueBuffer {
            value,
            dims,
            dtype: graph.value(value).dtype,
            layout,
            border: Border::default(),
            exact,
            holder,
            first: step,
            last: step,
            window: None,
        });
        self.copies.entry(value).or_default().push(id);
        id
    }

    /// Returns the copy of a value that was made first.
    pub(super) fn home(&self, value: ValueId) -> Option<BufferId> {
        self.copies
            .get(&value)
            .and_then(|copies| copies.first().copied())
    }

    /// Finds a copy that serves; widens its border if need be.
    pub(super) fn find(&mut self, value: ValueId, want: Want) -> Option<BufferId> {
        let copies = self.copies.get(&value)?.clone();
        let id = copies.into_iter().find(|&id| self.serves(id, want))?;
        if let Want::Layout(_, border) = want {
            self.all[id.0].border = self.all[id.0].border.union(border);
        }
        if matches!(want, Want::Dense) {
            self.all[id.0].exact = true;
        }
        Some(id)
    }

    /// Returns the layout that a new copy must get to serve.
    pub(super) fn layout_for(graph: &Graph, value: ValueId, want: Want) -> Layout {
        let dims = dims4(&graph.value(value).shape);
        match want {
            Want::Dense if is_flat(dims) && dims[0] == 1 => Layout::Flat,
            Want::Dense => Layout::Nchw,
            _ if is_flat(dims) => Layout::Flat,
            Want::Layout(layout, _) | Want::Vectors(_, layout) => layout,
            Want::Any => Layout::Nchw,
        }
    }

    /// Notes that a step reads a buffer.
    pub(super) fn read(&mut self, id: BufferId, step: usize) {
        let buffer = &mut self.all[id.0];
        buffer.last = buffer.last.max(step);
        if let Holder::Same(root) = buffer.holder {
            self.read(root, step);
        }
    }

    /// Returns the strides of a buffer.
    pub(super) fn geometry(&self, id: BufferId) -> Geometry {
        let buffer = &self.all[id.0];
        let whole = Geometry::new(buffer.dims, buffer.layout, buffer.border);
        buffer.window.map_or(whole, |rows| whole.windowed(rows))
    }

    fn serves(&self, id: BufferId, want: Want) -> bool {
        let buffer = &self.all[id.0];
        let own = matches!(buffer.holder, Holder::Arena | Holder::Same(_));
        if matches!(buffer.holder, Holder::Output(_)) {
            return false;
        }
        match want {
            // A flat value has one layout, but a kernel may read all of its padding.
            _ if is_flat(buffer.dims) && !matches!(want, Want::Dense) => {
                own && buffer.layout == Layout::Flat
            }
            Want::Any => true,
            Want::Layout(layout, border) => {
                let agrees = buffer.border.is_empty() || buffer.border.fill == border.fill;
                buffer.layout == layout && (border.is_empty() || (!buffer.exact && agrees))
            }
            Want::Vectors(lanes, _) => own && self.geometry(id).holds_vectors(lanes),
            Want::Dense => self.geometry(id).is_dense(),
        }
    }
}
