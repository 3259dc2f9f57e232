"use strict";
// The page's end of Python: one worker a page, which starts with the first question.
//
//   python.can             whether this page can run Python (not from file://)
//   python.ask(question, hear) → Promise of the answer, RESULT in demos/live/_reader.py, or null
//                          if Python has ended. hear(message) gets each message of that file's
//                          table; while Python starts it gets {said: WORDS}, and {said: ""} when
//                          it is ready
//   python.busy            whether a question has no answer yet
//   python.stop()          end the worker, with all names; open questions are answered by null,
//                          after {failed: SENTENCE} to their hear
//   python.restart()       the same without a sentence: the next question meets a new Python
//   python.ended(f)        f() is called whenever a Python has ended, so its names are gone
//   python.button(words, clicked, title) → a <button> for what runs; until Python is here it says
//                          what that costs ("9 MB, once")
//   python.show(message, into) → append what {shown} or {failed} says to an element: a picture or
//                          a page in a frame, a file to keep, a sentence with its folded trace
//
// Of site.js: all(selector, root), make(tag, options, ...children). Of editor.js:
//
//   editor(text, label, {changed(text), run()}) → {element, text (get and set), focus()}
