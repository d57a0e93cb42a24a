from negatoscope.cli import main

main()
