# Plans come from files: no silent narrowing.
target_compile_options(${room} PRIVATE -Wconversion)
target_compile_definitions(${room} PRIVATE PLAIT_VERSION="${PROJECT_VERSION}")
