find_package(XNNPACK REQUIRED)
find_package(pthreadpool REQUIRED)
target_link_libraries(${room} PUBLIC XNNPACK::XNNPACK pthreadpool::pthreadpool)
# The loops rely on unrolling, in every build type.
set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/backends/xnnpack/loops.cc PROPERTIES COMPILE_OPTIONS "-O3")
