# Plans come from files: no silent narrowing.
target_compile_options(${room} PRIVATE -Wconversion -Wno-sign-conversion)  # which clang counts in, gcc does not
target_compile_definitions(${room} PRIVATE PLAIT_VERSION="${PROJECT_VERSION}")
