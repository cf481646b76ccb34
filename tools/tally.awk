# Counts the tests in a log: GoogleTest's and Python unittest's summaries, a plain "N passed, N failed"
# line, node's test runner, and for ctest -V one for each test that prints none of these. Prints "PASSED FAILED SKIPPED".
function number(text, key) { return match(text, key "=[0-9]+") ? substr(text, RSTART + length(key) + 1, RLENGTH - length(key) - 1) + 0 : 0 }

{
  # ctest -V puts "12: " before each line of test 12.
  id = ""
  line = $0
  if (match(line, /^[0-9]+: /)) { id = substr(line, 1, RLENGTH - 2) + 0; line = substr(line, RLENGTH + 1) }
}
line ~ /^\[  PASSED  \] [0-9]+ test/ { split(line, w, " "); pass[id] += w[4] }
line ~ /^\[  FAILED  \] [0-9]+ test/ { split(line, w, " "); fail[id] += w[4] }
line ~ /^\[  SKIPPED \] [0-9]+ test/ { split(line, w, " "); skip[id] += w[4] }
line ~ /^[0-9]+ passed, [0-9]+ failed/ { split(line, w, " "); pass[id] += w[1]; fail[id] += w[3] }
line ~ /^# (pass|fail|skipped) [0-9]+$/ {  # node --test
  split(line, w, " ")
  if (w[2] == "pass") pass[id] += w[3]; else if (w[2] == "fail") fail[id] += w[3]; else skip[id] += w[3]
}
line ~ /^Ran [0-9]+ tests? in / { split(line, w, " "); ran[id] = w[2] }
line ~ /^(OK|FAILED)( \(.*\))?$/ && (id in ran) {
  bad = number(line, "failures") + number(line, "errors") + number(line, "unexpected successes")
  fail[id] += bad
  skip[id] += number(line, "skipped")
  pass[id] += ran[id] - bad - number(line, "skipped")
  delete ran[id]
}
# " 3/12 Test  #3: unit_tests ....   Passed    0.01 sec", or "...***Failed".
id == "" && match(line, /^ *[0-9]+\/[0-9]+ +Test +#[0-9]+: /) {
  split(substr(line, index(line, "#") + 1), w, ":")
  done[w[1] + 0] = line ~ / Passed +[0-9.]+ sec/ ? "passed" : "failed"
}

END {
  for (t in done) {
    if (done[t] == "passed" && pass[t] + fail[t] + skip[t] == 0) pass[t] = 1
    if (done[t] == "failed" && fail[t] == 0) fail[t] = 1
  }
  for (t in pass) p += pass[t]
  for (t in fail) f += fail[t]
  for (t in skip) s += skip[t]
  print p + 0, f + 0, s + 0
}
