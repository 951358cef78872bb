import type { Command } from 'commander'
import { createProgram } from '../src/cli/program.ts'
import { cell } from './option-tables.ts'

/** Options that many commands have, and which the page describes once. */
const COMMON = new Set(['--json', '--verbose', '--base-url'])

function leavesOf(command: Command): readonly Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf)
}

/** A section for each command, with its options in the words of its help. */
export function commandTables(): string {
  const program = createProgram(new AbortController().signal)
  return leavesOf(program)
    .map((command) => sectionOf(command, program))
    .join('\n\n')
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
    .map((row) => `| ${row.map(cell).join(' | ')} |`)
  if (rows.length === 0) return `${heading}\n\nNo options of its own.`
  return [heading, '', '| Option | Meaning |', '| --- | --- |', ...rows].join('\n')
}
