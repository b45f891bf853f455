//! Families of operators.

/// Returns whether an operator maps each element on its own, by constants at most.
pub(super) fn is_activation(op: &str) -> bool {
    matches!(
        op,
        "Relu"
            | "LeakyRelu"
            | "Clip"
            | "HardSigmoid"
            | "HardSwish"
            | "Sigmoid"
            | "Tanh"
            | "Swish"
            | "Gelu"
            | "Elu"
            | "Selu"
            | "Celu"
            | "ThresholdedRelu"
            | "Softplus"
            | "Softsign"
            | "Mish"
            | "Exp"
            | "Log"
            | "Sqrt"
            | "Abs"
            | "Neg"
            | "Reciprocal"
            | "Erf"
            | "Floor"
            | "Ceil"
            | "Round"
            | "Sign"
    )
}

/// Returns whether an operator is arithmetic of two values.
pub(super) fn is_arithmetic(op: &str) -> bool {
    matches!(op, "Add" | "Sub" | "Mul" | "Div" | "Pow" | "Max" | "Min")
}

/// Returns whether an operator works on one element at a time.
pub(super) fn is_elementwise(op: &str) -> bool {
    is_activation(op)
        || is_arithmetic(op)
        || matches!(
            op,
            "Sum"
                | "Mean"
                | "Mod"
                | "And"
                | "Or"
                | "Xor"
                | "Not"
                | "Equal"
                | "Greater"
                | "GreaterOrEqual"
                | "Less"
                | "LessOrEqual"
                | "Where"
                | "Cast"
                | "PRelu"
                | "Sin"
                | "Cos"
                | "Tan"
                | "Identity"
                | "IsNaN"
                | "IsInf"
        )
}

/// Returns whether an operator keeps all elements in their order.
pub(super) fn is_view(op: &str) -> bool {
    matches!(op, "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze")
}
