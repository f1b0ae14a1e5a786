// SPDX-License-Identifier: Apache-2.0
// Checks the built pages: each link and picture leads to a file of the site, and
// each fragment to an element of that page, and nothing is loaded from elsewhere.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const site = fileURLToPath(new URL('../bin/site/', import.meta.url))
const base = process.env.SITE_BASE || '/'
const files = readdirSync(site, { recursive: true }).filter((file) => file.endsWith('.html'))
const text = new Map(files.map((file) => [file, readFileSync(path.join(site, file), 'utf8')]))
const decode = (s) => decodeURIComponent(s.replaceAll('&amp;', '&'))
const ids = new Map([...text].map(([file, html]) => [file, new Set([...html.matchAll(/ id="([^"]*)"/g)].map((m) => m[1]))]))

// target returns the file that a path of the site stands for.
function target(place) {
  for (const file of [place, place + '.html', path.join(place, 'index.html')]) {
    const full = path.join(site, file)
    if (existsSync(full) && statSync(full).isFile()) return file
  }
}

let problems = 0
let links = 0
function problem(file, what) {
  problems++
  console.error(`${file}: ${what}`)
}

for (const [file, html] of text) {
  for (const [, tag, attribute, value] of html.matchAll(/<(\w+)[^>]*? (href|src)="([^"]*)"/g)) {
    links++
    if (/^(https?:)?\/\//.test(value)) {
      if (tag !== 'a') problem(file, `<${tag}> loads ${value}`)
      continue
    }
    if (/^(mailto|data):/.test(value)) continue
    const [place, fragment] = value.split('#')
    const from = place.startsWith('/') ? '.' : path.dirname(file)
    const relative = place.startsWith(base) ? place.slice(base.length) : place
    const to = place === '' ? file : target(path.join(from, decode(relative)))
    if (!to) problem(file, `${attribute} ${value} leads nowhere`)
    else if (fragment && !ids.get(to)?.has(decode(fragment))) problem(file, `${value}: ${to} has no such heading`)
  }
}
if (files.length < 30) problem('the site', `${files.length} pages, want more`)
console.log(`${files.length} pages, ${links} links, ${problems} problems`)
process.exit(problems > 0 ? 1 : 0)
