# Stands in for Zephyr: what its CMake does for a module, as its documentation describes the functions.
add_library(zephyr_interface INTERFACE)

# Sets the variables CONFIG_... as the file .config says.
function(import_kconfig file)
  file(STRINGS "${file}" options REGEX "^CONFIG_[A-Z0-9_]+=y$")
  foreach(option IN LISTS options)
    string(REPLACE "=y" "" name "${option}")
    set(${name} y PARENT_SCOPE)
  endforeach()
endfunction()

macro(zephyr_library_named name)
  set(ZEPHYR_CURRENT_LIBRARY ${name})
  add_library(${name} STATIC "")
  set_property(GLOBAL APPEND PROPERTY ZEPHYR_LIBS ${name})
  target_link_libraries(${name} PUBLIC zephyr_interface)
endmacro()

function(zephyr_library_sources)
  target_sources(${ZEPHYR_CURRENT_LIBRARY} PRIVATE ${ARGN})
endfunction()

function(zephyr_library_include_directories)
  target_include_directories(${ZEPHYR_CURRENT_LIBRARY} PRIVATE ${ARGN})
endfunction()

function(zephyr_library_compile_options)
  target_compile_options(${ZEPHYR_CURRENT_LIBRARY} PRIVATE ${ARGN})
endfunction()

function(zephyr_include_directories)
  target_include_directories(zephyr_interface INTERFACE ${ARGN})
endfunction()

# Links all of the modules' libraries to the image, used or not.
function(link_zephyr_libraries image)
  get_property(libraries GLOBAL PROPERTY ZEPHYR_LIBS)
  target_link_libraries(
    ${image} PRIVATE -Wl,--whole-archive ${libraries} -Wl,--no-whole-archive zephyr_interface
  )
endfunction()
