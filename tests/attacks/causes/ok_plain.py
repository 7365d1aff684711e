# cause: ok
print("fine")
