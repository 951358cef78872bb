import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { loadRules, RuleError } from 'rivulet/rules'
import { describe, expect, it } from 'vitest'
import { folderOf, rivulet } from './command.ts'

const GOOD =
  'version: 1\nrules:\n  - { alert: Good, on: [error] }\n  - { alert: Off, on: [error], enabled: false }\n'
const BAD = 'version: 1\nrules:\n  - { alert: Bad, on: [eror] }\n  - { alert: Good, on: [error] }\n'

const check = (...args: readonly string[]) => rivulet(['rules', 'check', ...args]).ended

describe('rivulet rules check', () => {
  it('prints how many rules there are', async () => {
    const folder = await folderOf({ 'good.yaml': GOOD })

    expect(await check(join(folder, '*.yaml'))).toEqual({
      code: 0,
      stdout: '1 rule, and 1 disabled: no problems\n',
      stderr: '',
    })
    expect(JSON.parse((await check(join(folder, 'good.yaml'), '--json')).stdout)).toEqual({
      rules: ['Good'],
      disabled: ['Off'],
      problems: [],
    })
  })

  it('prints each problem with its place, and exits with 1', async () => {
    const folder = await folderOf({ 'a,b.yaml': GOOD, 'bad.yaml': BAD })
    const bad = join(folder, 'bad.yaml')
    const [text, json, github] = await Promise.all([
      check(join(folder, '*.yaml')),
      check(join(folder, '*.yaml'), '--json'),
      check(bad, join(folder, '100%,.yaml'), '--github'),
    ])

    expect(text).toMatchObject({ code: 1, stderr: '' })
    expect(text.stdout.split('\n')).toEqual([
      expect.stringMatching(`^${bad}:3:24: Bad: on\\[0\\] must be .* did you mean error\\?$`),
      `${bad}:4:14: Good: Another rule has this name (line 3 of ${join(folder, 'a,b.yaml')}): use another one.`,
      '2 problems',
      '',
    ])
    expect(json.code).toBe(1)
    expect(JSON.parse(json.stdout).problems).toHaveLength(2)
    expect(github.code).toBe(1)
    expect(github.stdout.split('\n')).toEqual([
      `::error file=${join(folder, '100%25%2C.yaml')}::The file does not exist.`,
      expect.stringMatching(`^::error file=${bad},line=3,col=24::Bad: on\\[0\\] must be `),
      '2 problems',
      '',
    ])
  })

  it('refuses a command line without files, and two formats at once', async () => {
    expect(await check()).toMatchObject({ code: 2, stdout: '' })
    expect(await check('rules.yaml', '--json', '--github')).toMatchObject({ code: 2, stdout: '' })
  })
})

describe('loadRules', () => {
  it('reads a file once, and reports each that cannot be read', async () => {
    const folder = await folderOf({ 'good.yaml': GOOD })
    await mkdir(join(folder, 'more.yaml'))
    await writeFile(join(folder, 'latin.yaml'), Buffer.from([0x61, 0xe9]))
    await writeFile(join(folder, 'large.yaml'), '#'.repeat(2_000_000))
    const good = join(folder, 'good.yaml')

    expect((await loadRules([good, join(folder, 'goo?.yaml'), good])).names).toEqual(['Good'])
    const error: unknown = await loadRules([join(folder, '*.yaml'), join(folder, '*.yml')]).catch(
      (reason: unknown) => reason,
    )
    expect(error).toBeInstanceOf(RuleError)
    expect(error).toHaveProperty('problems', [
      expect.objectContaining({
        file: join(folder, '*.yml'),
        line: null,
        message: expect.stringMatching(/^No file matches/),
      }),
      expect.objectContaining({
        file: join(folder, 'large.yaml'),
        message: expect.stringMatching(/more than 1048576 bytes/),
      }),
      expect.objectContaining({ file: join(folder, 'latin.yaml'), message: expect.stringMatching(/UTF-8/) }),
      expect.objectContaining({
        file: join(folder, 'more.yaml'),
        message: expect.stringMatching(/^This is a folder/),
      }),
    ])
  })
})
