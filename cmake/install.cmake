# What `cmake --install` puts where. Component `plugin`: what a plug-in is built with (a header and the CMake package);
# `library`: libspmmbench.so; `program`: the rest.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/spmmbench)

add_library(spmmbench_plugin INTERFACE)
set_target_properties(spmmbench_plugin PROPERTIES EXPORT_NAME plugin)
target_include_directories(spmmbench_plugin INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_include_directories(spmmbench_library INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

install(FILES include/spmmbench/plugin.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/spmmbench COMPONENT plugin)
install(TARGETS spmmbench_plugin EXPORT plugin COMPONENT plugin)
install(EXPORT plugin NAMESPACE spmmbench:: FILE plugin.cmake DESTINATION ${package_folder} COMPONENT plugin)
configure_package_config_file(cmake/spmmbenchConfig.cmake.in ${CMAKE_BINARY_DIR}/spmmbenchConfig.cmake
  INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/spmmbenchConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/spmmbenchConfig.cmake ${CMAKE_BINARY_DIR}/spmmbenchConfigVersion.cmake
  DESTINATION ${package_folder} COMPONENT plugin)

install(TARGETS spmmbench_library EXPORT library LIBRARY COMPONENT library)
install(EXPORT library NAMESPACE spmmbench:: FILE library.cmake DESTINATION ${package_folder} COMPONENT library)
file(RELATIVE_PATH prefix_of_pc ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/spmmbench.pc.in ${CMAKE_BINARY_DIR}/spmmbench.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/spmmbench.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)

install(TARGETS spmmbench COMPONENT program)
