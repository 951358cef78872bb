/** Writes the options of each command into docs/reference/command.md: `npm run command-page`. A test compares the page with them. */
import { readFileSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import type { Command } from 'commander'
import { createProgram } from '../src/cli/program.ts'

const PAGE = 'docs/reference/command.md'
const MARKED = /(?<=<!-- options -->\n)[^]*(?=<!-- end of options -->)/

/** Options that many commands have, and which the page describes once. */
const COMMON = new Set(['--json', '--verbose', '--base-url'])

function leavesOf(command: Command): readonly Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf)
}

/** The options of each command as Markdown, in the words of its help. */
export function optionTables(): string {
  const program = createProgram(new AbortController().signal)
  return leavesOf(program)
    .map((command) => `\n${sectionOf(command, program)}\n`)
    .join('')
}

function sectionOf(command: Command, program: Command): string {
  const name = command.parent === program ? command.name() : `${command.parent?.name()} ${command.name()}`
  const values = command.usage().replace('[options]', '').trim()
  const heading = `### \`${`rivulet ${name} ${values}`.trim()}\``
  const help = command.createHelp()
  const rows = command.options
    .filter(({ long }) => !COMMON.has(long ?? ''))
    .map((option) => [
      `\`${option.flags}\`${option.mandatory ? ', required' : ''}`,
      help.optionDescription(option),
    ])
    .map((row) => `| ${row.map((cell) => cell.replaceAll('|', String.raw`\|`)).join(' | ')} |`)
  if (rows.length === 0) return `${heading}\n\nNo options of its own.`
  return [heading, '', '| Option | Meaning |', '| --- | --- |', ...rows].join('\n')
}

/** The part of the page that has the options, or what it should have. */
export function optionsOf(page: string): string | undefined {
  return MARKED.exec(page)?.[0]
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const tables = optionTables()
  writeFileSync(
    PAGE,
    readFileSync(PAGE, 'utf8').replace(MARKED, () => `${tables}\n`),
  )
}
