import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { invocation } from '../../src/cli/invocation.ts'
import { nextSteps } from '../../src/cli/start/next-steps.ts'
import { scratchFolder } from '../log/sqlite/scratch.ts'

describe('the next steps of rivulet start', () => {
  it('exist in a clone, where the command is an npm script', () => {
    const [files, commands] = split(nextSteps())

    expect(files).toEqual(['README.md', join('docs', 'README.md'), 'examples'])
    expect(commands).toContain('npm run rivulet -- serve --docs FOLDER')
  })

  it('exist where the package is installed, by its path from the current folder', async () => {
    const folder = scratchFolder()
    const root = join(folder, 'node_modules', 'rivulet')
    await mkdir(root, { recursive: true })
    await writeFile(join(root, 'README.md'), '# Rivulet')
    const [files, commands] = split(nextSteps(root, folder))

    expect(files).toEqual([join('node_modules', 'rivulet', 'README.md')])
    expect(files.every((file) => existsSync(resolve(folder, file)))).toBe(true)
    expect(commands).toContain('npx rivulet serve --docs FOLDER')
  })

  it('call the command by its name where it is installed globally', () => {
    const root = resolve('/usr/lib/node_modules/rivulet')

    expect(invocation(root, resolve('/home/someone'))).toBe('rivulet')
    expect(invocation(root, resolve('/usr/lib/somewhere'))).toBe('npx rivulet')
  })
})

function split(steps: ReturnType<typeof nextSteps>) {
  const all = steps.map(([where]) => where)
  const isCommand = (where: string) => /^np[mx] /.test(where)
  return [all.filter((where) => !isCommand(where)), all.filter(isCommand)] as const
}
