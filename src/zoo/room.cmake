# Weights are the same bytes on every machine only if no compiler fuses a product and its sum.
target_compile_options(${room} PRIVATE -ffp-contract=off)
