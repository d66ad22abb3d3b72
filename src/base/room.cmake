find_package(nlohmann_json 3.10 REQUIRED)
target_link_libraries(${room} PUBLIC nlohmann_json::nlohmann_json)
