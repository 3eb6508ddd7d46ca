{% for module in modules %}

# ---- Test firmware: `mlfbuild verify --elf {{ module }}_verify.elf --vectors <file>.npz` checks it ----

add_executable(mlf_{{ module }}_verify EXCLUDE_FROM_ALL {{ "verify/verify.c" | here }})
target_include_directories(mlf_{{ module }}_verify PRIVATE {{ ("verify/" ~ module) | here }})
target_link_libraries(mlf_{{ module }}_verify PRIVATE mlf::{{ module }} m)
set_target_properties(mlf_{{ module }}_verify PROPERTIES OUTPUT_NAME {{ module }}_verify SUFFIX .elf)
{% if on_board %}
target_link_libraries(mlf_{{ module }}_verify PRIVATE mlf::board $<TARGET_NAME_IF_EXISTS:mlf::placement>)
target_compile_definitions(mlf_{{ module }}_verify PRIVATE MEASURE_STACK=1)
{% endif %}
{% endfor %}
