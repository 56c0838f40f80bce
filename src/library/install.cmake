# What `cmake --install` puts where. Component `plugin`: what a plug-in is built with (headers and the CMake package);
# `library`: libspmmbench.so; `program`: the rest.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/spmmbench)

add_library(spmmbench_plugin INTERFACE)
set_target_properties(spmmbench_plugin PROPERTIES EXPORT_NAME plugin)
target_include_directories(spmmbench_plugin INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_include_directories(spmmbench_library INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

install(FILES include/spmmbench/plugin.h include/spmmbench/plugin.hpp include/spmmbench/plugin_windows.hpp
              include/spmmbench/cuda_on_host.c include/spmmbench/plugin_helpers.h include/spmmbench/measure.h include/spmmbench/attention.h include/spmmbench/swiglu.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/spmmbench COMPONENT plugin)
install(TARGETS spmmbench_plugin EXPORT plugin COMPONENT plugin)
install(EXPORT plugin NAMESPACE spmmbench:: FILE plugin.cmake DESTINATION ${package_folder} COMPONENT plugin)
configure_package_config_file(src/library/spmmbenchConfig.cmake.in ${CMAKE_BINARY_DIR}/spmmbenchConfig.cmake
  INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/spmmbenchConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/spmmbenchConfig.cmake ${CMAKE_BINARY_DIR}/spmmbenchConfigVersion.cmake
  DESTINATION ${package_folder} COMPONENT plugin)

install(TARGETS spmmbench_library EXPORT library LIBRARY COMPONENT library)
install(EXPORT library NAMESPACE spmmbench:: FILE library.cmake DESTINATION ${package_folder} COMPONENT library)
file(RELATIVE_PATH prefix_of_pc ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(src/library/spmmbench.pc.in ${CMAKE_BINARY_DIR}/spmmbench.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/spmmbench.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)

# The manual page and the completions are made of the options that the program has.
set(documents "")
foreach(document man bash zsh fish)
  set(file ${CMAKE_BINARY_DIR}/spmmbench.${document})
  add_custom_command(OUTPUT ${file} COMMAND spmmbench document ${document} > ${file} DEPENDS spmmbench VERBATIM)
  list(APPEND documents ${file})
endforeach()
set(manual ${CMAKE_BINARY_DIR}/spmmbench.1.gz)
add_custom_command(OUTPUT ${manual} COMMAND gzip -9nc ${CMAKE_BINARY_DIR}/spmmbench.man > ${manual}
  DEPENDS ${CMAKE_BINARY_DIR}/spmmbench.man VERBATIM)
add_custom_target(spmmbench_documents ALL DEPENDS ${documents} ${manual})

install(TARGETS spmmbench COMPONENT program)
install(FILES ${manual} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
install(FILES ${CMAKE_BINARY_DIR}/spmmbench.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
  RENAME spmmbench COMPONENT program)
install(FILES ${CMAKE_BINARY_DIR}/spmmbench.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions
  RENAME _spmmbench COMPONENT program)
install(FILES ${CMAKE_BINARY_DIR}/spmmbench.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
  COMPONENT program)
install(FILES README.md CHANGELOG.md CITATION.cff DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright COMPONENT program)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME spmmbench)
set(CPACK_PACKAGE_CONTACT "The spmmbench developers <developers@spmmbench.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Which sparse x dense product is fastest for this matrix and this GPU")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DESCRIPTION "spmmbench measures sparse x dense products on the matrices and the machine
at hand: vendor libraries, published systems and kernels of its own, each
verified, with its preprocessing and its distance from the hardware's limit.
Plug-ins add kernels; libspmmbench.so offers all of them to other programs.")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
file(WRITE ${CMAKE_BINARY_DIR}/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_BINARY_DIR}/triggers)
# What is loaded at run time, so that no dependency shows.
if(matio_soname)
  string(REGEX REPLACE "\\.so\\." "" CPACK_DEBIAN_PACKAGE_RECOMMENDS ${matio_soname})
endif()
if(SPMMBENCH_CUDA)
  string(REPLACE "." "-" cuda_version "${CUDAToolkit_VERSION_MAJOR}.${CUDAToolkit_VERSION_MINOR}")
  list(APPEND CPACK_DEBIAN_PACKAGE_RECOMMENDS libcublas-${cuda_version} libcusparse-${cuda_version})
endif()
list(JOIN CPACK_DEBIAN_PACKAGE_RECOMMENDS ", " CPACK_DEBIAN_PACKAGE_RECOMMENDS)
include(CPack)
