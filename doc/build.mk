# doc/: pages and texts

MAN_PAGES := $(wildcard doc/man/*.[1-8])

.PHONY: check-doc
check-doc:
	@scripts/check-doc.sh
