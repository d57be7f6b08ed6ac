from punchlist_faults.runner import main

main()
