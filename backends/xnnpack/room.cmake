find_package(XNNPACK REQUIRED)
find_package(pthreadpool REQUIRED)
target_link_libraries(${room} PUBLIC XNNPACK::XNNPACK pthreadpool::pthreadpool)
# Debian's XNNPACK chooses its kernels by what cpuinfo says of the processor.
find_package(cpuinfo CONFIG QUIET)
if(TARGET cpuinfo::cpuinfo)
  target_link_libraries(${room} PRIVATE cpuinfo::cpuinfo)
  target_compile_definitions(${room} PRIVATE PLAIT_WITH_CPUINFO)
endif()
# The loops rely on unrolling, in every build type.
set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/backends/xnnpack/loops.cc PROPERTIES COMPILE_OPTIONS "-O3")
