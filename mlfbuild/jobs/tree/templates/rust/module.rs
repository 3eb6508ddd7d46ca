{% for name, reference, ports in structs %}
pub struct {{ name }}<'a> {
{% for port in ports %}
    /// `{{ port.shape }}`
    pub {{ port.name }}: {{ reference }} {{ port.array }},
{% endfor %}
}
{% for line in ports | sum(attribute="constants", start=()) %}
{% if loop.first %}

impl {{ name }}<'_> {
{% endif %}
    {{ line }}
{% if loop.last %}
}
{% endif %}
{% endfor %}

{% endfor %}
{% if one.reentrant %}
/// Memory for the intermediate tensors of one run; it holds nothing between two runs.
#[repr(C, align({{ one.workspace[1] }}))]
pub struct Workspace([core::mem::MaybeUninit<u8>; {{ one.workspace[0] }}]);

impl Workspace {
    pub const fn new() -> Self {
        Self([core::mem::MaybeUninit::uninit(); {{ one.workspace[0] }}])
    }
}

impl Default for Workspace {
    fn default() -> Self {
        Self::new()
    }
}

{% endif %}
{% if one.reset %}
/// What the model remembers from one run to the next; one for each stream.
#[repr(C, align({{ one.state[1] }}))]
pub struct State([u8; {{ one.state[0] }}]);

impl State {
    pub fn new() -> Self {
        let mut state = Self([0; {{ one.state[0] }}]);
        state.reset();
        state
    }

    /// The next run is like the first one.
    pub fn reset(&mut self) {
        unsafe { {{ one.reset }}(self.0.as_mut_ptr().cast()) };
    }
}

impl Default for State {
    fn default() -> Self {
        Self::new()
    }
}

{% endif %}
/// Runs the model once.{% if not one.reentrant +%}
///
/// # Safety
///
/// Its workspace is static: only one call of this function may run at a time.{% endif +%}
pub {{ "" if one.reentrant else "unsafe " }}fn run(
    inputs: Inputs<'_>,
    outputs: Outputs<'_>,
{% if one.reentrant %}
    workspace: &mut Workspace,
{% endif %}
{% if one.reset %}
    state: &mut State,
{% endif %}
) -> Result<(), crate::Error> {
    let inputs = RawInputs {
{% for port in inputs %}
        {{ port.name }}: inputs.{{ port.name }}.as_ptr().cast(),
{% endfor %}
    };
    let outputs = RawOutputs {
{% for port in outputs %}
        {{ port.name }}: outputs.{{ port.name }}.as_mut_ptr().cast(),
{% endfor %}
    };
    let status = {{ "unsafe { " if one.reentrant else "" }}{{ one.function }}(&inputs, &outputs{{ ", workspace.0.as_mut_ptr().cast()" if one.reentrant else "" }}{{ ", state.0.as_mut_ptr().cast()" if one.reset else "" }}){{ " }" if one.reentrant else "" }};
    match status {
        0 => Ok(()),
        _ => Err(crate::Error(status)),
    }
}

#[repr(C)]
struct RawInputs {
{% for port in inputs %}
    {{ port.name }}: *const core::ffi::c_void,
{% endfor %}
}

#[repr(C)]
struct RawOutputs {
{% for port in outputs %}
    {{ port.name }}: *mut core::ffi::c_void,
{% endfor %}
}

extern "C" {
    fn {{ one.function }}(
        inputs: *const RawInputs,
        outputs: *const RawOutputs,
{% if one.reentrant %}
        workspace: *mut core::ffi::c_void,
{% endif %}
{% if one.reset %}
        kept: *mut core::ffi::c_void,
{% endif %}
    ) -> i32;
{% if one.reset %}
    fn {{ one.reset }}(kept: *mut core::ffi::c_void) -> i32;
{% endif %}
}
