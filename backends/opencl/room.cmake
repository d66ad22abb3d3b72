# Headers only: the loader is opened at run time, so that Plait starts on machines without OpenCL.
find_path(OPENCL_HEADERS CL/cl.h REQUIRED)
target_include_directories(${room} SYSTEM PUBLIC ${OPENCL_HEADERS})
target_link_libraries(${room} PUBLIC ${CMAKE_DL_LIBS})
target_compile_definitions(${room} PRIVATE PLAIT_VERSION="${PROJECT_VERSION}")  # part of the key of cached programs
