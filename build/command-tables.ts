import { Help } from 'commander'
import type { Command } from 'commander'
import { createProgram } from '../src/cli/program.ts'

/** A section for each command: its description, how it is called, and a table of its options. */
export function commandSections(): string {
  const help = new Help()
  const program = createProgram(new AbortController().signal)
  return leavesOf(program)
    .map(({ command, path }) => {
      const options = command.options
        .filter(({ hidden }) => !hidden)
        .map(
          (option) =>
            `| \`${option.flags.replaceAll('|', '\\|')}\` | ${cell(help.optionDescription(option))} |`,
        )
      return [
        `### \`rivulet ${path}\``,
        command.description(),
        `\`rivulet ${path} ${command.usage()}\``,
        ['| Option | What it does |', '| --- | --- |', ...options].join('\n'),
      ].join('\n\n')
    })
    .join('\n\n')
}

interface Leaf {
  readonly command: Command
  readonly path: string
}

/** The commands that have no commands of their own. */
function leavesOf(command: Command, path = ''): readonly Leaf[] {
  return command.commands.flatMap((each) => {
    const inner = `${path} ${each.name()}`.trim()
    return each.commands.length === 0 ? [{ command: each, path: inner }] : leavesOf(each, inner)
  })
}

/** A text within a cell of a table. Placeholders such as `<n>` would be HTML. */
function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll(/\s+/g, ' ').replaceAll('<', '&lt;')
}
