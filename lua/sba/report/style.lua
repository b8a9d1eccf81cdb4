-- SPDX-License-Identifier: Apache-2.0
-- The style sheet of a report: light and dark as the reader's system is, for desks, phones and paper.

return [[
:root {
  --page: #f6f7f9; --card: #ffffff; --ink: #1b1f24; --quiet: #57606a; --line: #d5dae0; --track: #e9ecf0; --link: #0550ae;
  --success: #116329; --success-bar: #2da44e; --success-wash: #e6f6ea;
  --failure: #a40e26; --failure-bar: #d1242f; --failure-wash: #ffebe9;
  --timeout: #7d4e00; --timeout-bar: #c98200; --timeout-wash: #fff4d6;
  --model: #6639ba; --model-bar: #8250df; --hunk: #0550ae;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0e1116; --card: #171b22; --ink: #e3e8ee; --quiet: #9aa5b1; --line: #30373f; --track: #252b33; --link: #79b8ff;
    --success: #5fd07a; --success-bar: #3fb950; --success-wash: #11281a;
    --failure: #ff8b82; --failure-bar: #f85149; --failure-wash: #341a1c;
    --timeout: #eab64f; --timeout-bar: #d29922; --timeout-wash: #2e2412;
    --model: #c3a2ff; --model-bar: #a371f7; --hunk: #79b8ff;
  }
}
* { box-sizing: border-box; }
html { color-scheme: light dark; -webkit-text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 68rem; background: var(--page); color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; overflow-wrap: anywhere;
}
h1 { margin: .25rem 0; font-size: 1.6rem; line-height: 1.25; }
h2 { margin: 2rem 0 .6rem; font-size: 1.15rem; }
h1 .id { font-weight: 400; }
p { margin: .3rem 0; }
a { color: var(--link); }
code, pre, .what { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: .86rem; }
.turn .what, .calls .what { font-family: inherit; font-size: .95rem; }
.quiet { color: var(--quiet); font-size: .92rem; }
.nowrap { white-space: nowrap; }
.label { margin: .8rem 0 .2rem; color: var(--quiet); font-size: .8rem; font-weight: 600; }
.why .label { font-size: inherit; margin: 0; }
.what, li { position: relative; }
.unseen { position: absolute; left: 0; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.success { --ink-of: var(--success); --bar: var(--success-bar); --wash: var(--success-wash); }
.failure { --ink-of: var(--failure); --bar: var(--failure-bar); --wash: var(--failure-wash); }
.timeout, .interrupted { --ink-of: var(--timeout); --bar: var(--timeout-bar); --wash: var(--timeout-wash); }
.model, .running { --ink-of: var(--model); --bar: var(--model-bar); --wash: var(--track); }
.skipped { --ink-of: var(--quiet); --bar: var(--line); --wash: var(--track); }
.sign { font-weight: 700; }
.sign, .verdict { color: var(--ink-of); }
.verdict { display: inline-block; margin: 0; padding: .15rem .8rem; border-radius: 1rem; background: var(--wash); }
.why { margin: 1rem 0; padding: .8rem 1rem; border-radius: .5rem; border-left: .3rem solid var(--bar); background: var(--wash); }
ul.message { margin: .3rem 0; padding-left: 1.2rem; }
.message { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: .9rem; white-space: pre-wrap; }
.answer { padding: .8rem 1rem; border: 1px solid var(--line); border-radius: .5rem; background: var(--card); white-space: pre-wrap; }
svg { display: block; }
.strip { width: 100%; height: 1.6rem; border-radius: .3rem; } .strip.two { height: 3.2rem; }
rect { fill: var(--bar); } .track { fill: var(--track); }
a:hover rect { opacity: .7; }
.ticks { display: flex; color: var(--quiet); font-size: .78rem; }
.ticks span { flex: 1; padding-left: .25rem; border-left: 1px solid var(--line); white-space: nowrap; }
details { border: 1px solid var(--bar, var(--line)); border-radius: .4rem; background: var(--card); margin: .3rem 0; }
details.success { border-color: var(--line); }
summary {
  position: relative; display: grid; grid-template-columns: 1.1rem 2.3rem minmax(0, 1fr) 5rem; gap: .6rem; align-items: center;
  padding: .35rem .7rem .35rem 1.5rem; cursor: pointer; list-style: none;
}
summary::-webkit-details-marker { display: none; }
summary::before { content: "▸"; position: absolute; left: .5rem; color: var(--quiet); font-size: .8rem; }
details[open] > summary::before { content: "▾"; }
.turn summary { grid-template-columns: 1.9rem minmax(0, 1fr) auto; }
details:not([class]) summary { grid-template-columns: minmax(0, 1fr); }
summary:hover { background: var(--track); border-radius: .4rem; }
summary:focus-visible, pre:focus-visible, a:focus-visible { outline: 2px solid var(--link); outline-offset: 1px; }
summary .what { overflow: hidden; white-space: nowrap; text-overflow: ellipsis; }
.number, .time { color: var(--quiet); font-size: .85rem; font-variant-numeric: tabular-nums; text-align: right; white-space: nowrap; }
.inside { padding: .1rem .9rem .8rem; scroll-margin-top: 5rem; }
.inside:target { box-shadow: inset .25rem 0 var(--link); }
pre {
  margin: 0; padding: .6rem .8rem; max-height: 32rem; overflow: auto; border-radius: .4rem; background: var(--page);
  border: 1px solid var(--line); white-space: pre-wrap; line-height: 1.4; tab-size: 4;
}
pre span { display: block; }
pre.ends { display: flex; flex-direction: column-reverse; } pre.ends .whole { flex: none; }
.added { color: var(--success); background: var(--success-wash); } .removed { color: var(--failure); background: var(--failure-wash); }
.hunk { color: var(--hunk); } .file { font-weight: 700; }
.byte { padding: 0 .15em; border-radius: .2em; background: var(--track); color: var(--model); font-weight: 400; font-size: .9em; }
.facts { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; margin-top: .6rem; color: var(--quiet); font-size: .85rem; }
.facts b { color: var(--ink); font-weight: 600; }
ul.plain { margin: .3rem 0; padding: 0; list-style: none; }
ul.plain li { display: grid; grid-template-columns: 1.4rem minmax(0, 1fr); padding: .2rem 0; }
ul.plain li.part { margin-left: 1.4rem; }
ul.calls { margin: .2rem 0; padding-left: 1.2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { white-space: nowrap; } td { min-width: 5rem; } td:first-child { min-width: 9rem; }
td code { font-size: .75rem; color: var(--quiet); }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .2rem 1.2rem; margin: 0; }
dt { color: var(--quiet); } dd { margin: 0; }
@media (max-width: 42rem) {
  body { padding: 1rem .7rem 3rem; }
  summary { grid-template-columns: 1.1rem 2.3rem minmax(0, 1fr) auto; gap: .2rem .5rem; }
  .turn summary { grid-template-columns: 1.6rem minmax(0, 1fr); }
  .turn .time { grid-column: 2; text-align: left; white-space: normal; }
  dl { grid-template-columns: minmax(0, 1fr); gap: 0; } dd { margin-bottom: .4rem; }
}
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; }
  pre { max-height: none; overflow: visible; }
  details, tr, .why { break-inside: avoid-page; }
  h2 { break-after: avoid; }
}
]]
