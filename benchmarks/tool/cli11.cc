// CLI11's functions, compiled here once for the whole tool (CLI11_COMPILE): in every file that includes it they take most of the time.
// Versions before 2.3 are headers only and ignore this.
#if __has_include(<CLI/impl/App_inl.hpp>)
#include <CLI/impl/App_inl.hpp>
#include <CLI/impl/Argv_inl.hpp>
#include <CLI/impl/Config_inl.hpp>
#include <CLI/impl/Encoding_inl.hpp>
#include <CLI/impl/Formatter_inl.hpp>
#include <CLI/impl/Option_inl.hpp>
#include <CLI/impl/Split_inl.hpp>
#include <CLI/impl/StringTools_inl.hpp>
#include <CLI/impl/Validators_inl.hpp>
#endif
