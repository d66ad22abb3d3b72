# Parts equal the whole bit for bit only if a product and its sum are rounded alike in vector bodies and their remainders.
target_compile_options(${room} PRIVATE -ffp-contract=off)
