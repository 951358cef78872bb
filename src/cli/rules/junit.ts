import type { RuleTestReport } from 'rivulet/rules'

/** A report of tests as JUnit's XML, which CI systems read: a suite for each file. */
export function junitReport({ tests, failed, ms }: RuleTestReport): string {
  const files = Map.groupBy(tests, ({ file }) => file)
  const suites = Array.from(files, ([file, own]) => {
    const failures = own.filter(({ passed }) => !passed).length
    const time = own.reduce((sum, test) => sum + test.ms, 0)
    return [
      `  <testsuite name="${escaped(file)}" tests="${own.length}" failures="${failures}" time="${seconds(time)}">`,
      ...own.map(testCase),
      '  </testsuite>',
    ].join('\n')
  })
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites tests="${tests.length}" failures="${failed}" time="${seconds(ms)}">`,
    ...suites,
    '</testsuites>',
  ].join('\n')
}

function testCase({
  file,
  line,
  name,
  failures,
  happened,
  merged,
  ms,
}: RuleTestReport['tests'][number]): string {
  const attributes = `name="${escaped(name)}" classname="${escaped(file)}" file="${escaped(file)}" line="${line ?? 1}" time="${seconds(ms)}"`
  if (failures.length === 0) return `    <testcase ${attributes}/>`
  const bodies = failures.map(({ line: at, column, message, expected, got }) => {
    const text = [
      `${file}:${at ?? 1}:${column ?? 1}`,
      `expected  ${expected}`,
      ...(got.length === 0 ? ['nothing'] : got).map((each) => `got       ${each}`),
      ...merged.map((each) => `${file}:${each.line ?? 1}:${each.column ?? 1} ${each.message}`),
      'what happened:',
      ...happened.map((each) => `  ${each}`),
    ].join('\n')
    return `      <failure message="${escaped(message)}">${escaped(text).replaceAll('&#10;', '\n')}</failure>`
  })
  return [`    <testcase ${attributes}>`, ...bodies, '    </testcase>'].join('\n')
}

function seconds(ms: number): string {
  return (ms / 1_000).toFixed(3)
}

// oxlint-disable-next-line no-control-regex -- XML has no way to write these.
const NOT_XML = /[\u0000-\u0008\u000B\u000C\u000E-\u001F\uFFFE\uFFFF]/g

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  '\n': '&#10;',
}

function escaped(text: string): string {
  return text
    .toWellFormed()
    .replace(NOT_XML, '\uFFFD')
    .replace(/[&<>"\n]/g, (character) => ENTITIES[character] ?? character)
}
