# Add the monitor of a serial line to mlf_board, for firmware that is built with MLF_HOST_LINK serial.
#
#   MLF_UART       C file with mlf_serial_get() and mlf_serial_put()
#   MLF_RAM_BEGIN, MLF_RAM_END  the memory that the host may write

target_sources(mlf_board PRIVATE "${CMAKE_CURRENT_LIST_DIR}/mlf_serial.c" "${MLF_UART}")
target_include_directories(mlf_board PRIVATE "${CMAKE_CURRENT_LIST_DIR}" "${CMAKE_CURRENT_LIST_DIR}/../board")
target_compile_definitions(mlf_board PRIVATE MLF_SERIAL_RAM_BEGIN=${MLF_RAM_BEGIN}u
                                             MLF_SERIAL_RAM_END=${MLF_RAM_END}u)
