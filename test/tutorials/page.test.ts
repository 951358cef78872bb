import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { expect, it, onTestFinished, vi } from 'vitest'
import { ROOT } from '../package/build.ts'
import { sharedPackage } from '../package/installed.ts'
import { openPageInJsdom } from '../support/page-in-jsdom.ts'

// It indexes documents, and bundles a page.
vi.setConfig({ testTimeout: 120_000 })
const WAIT = { timeout: 60_000 }

/** An `npm` whose `install` links the packages, since the network and the registry are no part of the test. */
const NPM = `#!/bin/sh
if [ "$1" != install ]; then PATH="$REAL_PATH" exec npm "$@"; fi
shift
for name in "$@"; do mkdir -p node_modules && ln -s "$PACKAGES/$name" "node_modules/$name" || exit 1; done
`

const isCommands = ({ kind }: Block) => kind === 'commands'

/** An empty folder, and the environment of a reader at a terminal there. */
async function emptyFolder() {
  const root = await mkdtemp(join(tmpdir(), 'rivulet-tutorial-'))
  onTestFinished(() => rm(root, { recursive: true, force: true }))
  const folder = join(root, 'folder')
  const bin = join(root, 'bin')
  const packages = join(root, 'packages')
  for (const each of [folder, bin, packages]) await mkdir(each)
  await writeFile(join(bin, 'npm'), NPM)
  await chmod(join(bin, 'npm'), 0o755)
  for (const name of await readdir(join(ROOT, 'node_modules'))) {
    await symlink(join(ROOT, 'node_modules', name), join(packages, name), 'junction')
  }
  await symlink((await sharedPackage()).path(''), join(packages, 'rivulet'), 'junction')
  const path = [dirname(process.execPath), process.env['PATH'] ?? ''].join(delimiter)
  const env = {
    ...process.env,
    PATH: [bin, path].join(delimiter),
    REAL_PATH: path,
    PACKAGES: packages,
    PORT: '0',
  }
  return { folder, env }
}

it('docs/tutorials/page.md leads from an empty folder to a live page, and to one whose server is gone', async () => {
  const blocks = blocksOf('page.md')
  const { folder, env } = await emptyFolder()
  // The last command starts the server.
  const start = blocks.findLastIndex(isCommands)
  for (const block of blocks.slice(0, start)) {
    if (isCommands(block)) await promisify(execFile)('sh', ['-ec', block.text], { cwd: folder, env })
    else await writeFile(join(folder, block.file), block.text)
  }
  const [address = '', page = '', cut = ''] = blocks.flatMap(({ kind, text }) =>
    kind === 'seen' ? text : [],
  )

  const server = spawn('sh', ['-ec', `exec ${blocks[start]?.text}`], {
    cwd: folder,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void server.kill('SIGKILL'))
  const [url] = await once(createInterface(server.stdout), 'line')
  expect(url).toMatch(patternOf(address))

  const document = await openPageInJsdom(url)
  const [status = '', ...answers] = page.split('\n')
  const lines = () => Array.from(document.querySelectorAll('p'), ({ textContent }) => textContent)
  // The answers, and not the states of their runs.
  const isAnswered = (line: string) => /RxJS|Reactive|install/.test(line.slice(line.indexOf('?')))
  await vi.waitFor(() => expect(lines().filter(isAnswered)).toHaveLength(answers.length), WAIT)
  await vi.waitFor(() => expect(lines()[0]).toBe(status), WAIT)
  const [, ...rows] = lines()
  for (const answer of answers) expect(rows).toContainEqual(expect.stringMatching(patternOf(answer)))
  server.kill('SIGINT')

  await vi.waitFor(() => expect(lines()).toEqual([cut, ...rows]), WAIT)
})

/** A fenced block of a tutorial: commands to type, a file to paste, or what the reader sees. */
interface Block {
  readonly kind: 'commands' | 'file' | 'seen'
  /** The name of a file, from its first line. */
  readonly file: string
  readonly text: string
}

/** The blocks of a tutorial, in order. */
function blocksOf(page: string): Block[] {
  const text = readFileSync(join(ROOT, 'docs/tutorials', page), 'utf8')
  return [...text.matchAll(/^```(?<language>\w+)\n(?<text>[^]*?)^```$/gm)].map(({ groups }) => {
    const { language = '', text: block = '' } = groups ?? {}
    if (language === 'sh') return { kind: 'commands', file: '', text: block }
    if (language === 'text') return { kind: 'seen', file: '', text: block.trim() }
    const [, file] = /^\/\/ (\S+)\n/.exec(block) ?? []
    if (file === undefined) throw new Error(`a block of ${page} does not name its file: ${block}`)
    return { kind: 'file', file, text: block }
  })
}

/** What the reader sees as a pattern: `…` stands for anything within a line, and the port for any other one. */
function patternOf(seen: string): RegExp {
  const escaped = seen.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
  return new RegExp(
    `^${escaped.replaceAll('…', '.+').replaceAll('localhost:3000', String.raw`localhost:\d+`)}$`,
  )
}
