if(NOT TARGET nlohmann_json::nlohmann_json)
  find_package(nlohmann_json 3.10 REQUIRED)
endif()
target_link_libraries(${room} PUBLIC nlohmann_json::nlohmann_json)
