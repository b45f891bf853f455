//! The kernels run, on every instruction set that runs here.

mod cuts;
mod deconv;
mod generator;
mod halves;
mod kernels;
mod lanes;
mod levels;
mod matmul;
mod node;
mod qbench;
mod qconv;
mod qdense;
mod qdepthwise;
mod quantized;
mod reorder;
mod run;
mod segments;
mod shares;
mod width;
mod winograd;

mod loops_convolution;
mod loops_copy;
mod loops_crop;
mod loops_einsum;
mod loops_elementwise;
mod loops_gather;
mod loops_generate;
mod loops_matmul;
mod loops_pooling;
mod loops_quantize;
mod loops_recurrent;
mod loops_reduce;
mod loops_region;
mod loops_resize;
