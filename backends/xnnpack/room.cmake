find_package(XNNPACK REQUIRED)
find_package(pthreadpool REQUIRED)
target_link_libraries(${room} PUBLIC XNNPACK::XNNPACK pthreadpool::pthreadpool)
# The loops are vectorised by the compiler; -ffp-contract=off would cost fused multiply-adds. They run in blocks of fixed
# size (tails through a padded copy), so that an element's bits do not depend on its position.
set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/backends/xnnpack/loops.cc PROPERTIES COMPILE_OPTIONS "-O3")
