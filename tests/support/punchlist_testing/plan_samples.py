"""A plan of each Markdown form, in the style of the program that writes it."""

SAMPLES = {
    "kiro": """# Implementation Plan

- [x] 1. Set up
- [ ]* 1.1 Write tests
  - Cover both sides
  - _Requirements: 1.1, 2.3_
- [-] 2. Build the parser
  - _Dependencies: 1_
  - [ ]\\* 2.1 Nested and optional
- [ ] **3. Ship**
  - **Dependencies:** Tasks 1.1, 2
""",
    "spec-kit": """# Tasks: Login

## Format: `[ID] [P?] [Story] Description`

- **[P]**: can run in parallel

## Phase 1: Setup

- [X] T001 Create the project
- [x] T002 [P] Add a linter

**Checkpoint**: ready

## Phase 2: User Story 1

### Models

- [ ] T003 [P] [US1] Write the model (depends on T001)
- [ ] T004 [US1] Write the service (depends on T002-T003)
- [ ] T005 Measure

## Dependencies

- T003 before T005

## Notes

- [P] tasks = different files, no dependencies
- [Story] label maps a task to a story
""",
    "openspec": """## 1. Schema

- [x] 1.1 Add the table
- [ ] 1.2 Migrate (depends on 1.1)

## 2. Interface

- [ ] 2.1 Show it
  - [ ] 2.1.1 Translate it
""",
    "obsidian": """# Week

- [ ] Pay rent #home 🔺 📅 2099-12-01 🆔 rent
- [/] Water #garden plants 🔁 every 3 days 🛫 2099-12-05 ⏳ 2099-12-04
- [x] Post the letter ➕ 2026-11-01 ✅ 2026-11-20 ^b1
- [ ] Read [priority:: high] (due:: 2099-12-24) [dependsOn:: rent, none]
- [ ] Ask 📅 2099-13-40
- [ ] 📅 2099-12-01
""",
    "kanban": """---
kanban-plugin: basic
---

## To Do

- [ ] First @{2099-12-02} @@{10:30}

## 🚧 In Progress (1)

- [ ] Second

## Ideas

- [ ] Third

## Done

**Complete**
- [x] Fourth

***

## Archive

- [ ] Fifth
""",
    "logseq": """- Project
\t- TODO [#A] Write it
\t  DEADLINE: <2099-12-02 Wed 10:30 .+1d>
\t  SCHEDULED: <2099-12-01 Tue>
\t  id:: 64-aa
\t  more text
\t\t- DOING Part
\t\t- plain note
\t- DONE Over
\t  :LOGBOOK:
\t  CLOCK: [2026-11-01]
\t  :END:
- LATER Else
- WAITING Held
- CANCELED Dropped
""",
}
