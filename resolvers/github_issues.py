"""A resolver for ra: `owner/repo#12` in a prompt attaches that GitHub issue with its comments.

    agent:
      context:
        resolvers:
          - {name: issues, path: ./resolvers/github_issues.py}

It asks the `gh` program when there is one (private repositories work, with your login), else the public
API, or the one that $GITHUB_API_URL names.
"""

import asyncio
import json
import os
import shutil

name = "issues"
pattern = r"(?<![\w/])([\w.-]+/[\w.-]+#\d+)\b"

MAX_COMMENTS = 20


async def resolve(ref, ctx):
    repo, _, number = ref.partition("#")
    if shutil.which("gh"):
        issue = await _from_program(repo, number, ctx)
        author, comments = issue["author"], issue["comments"]
    else:
        url = f"{os.environ.get('GITHUB_API_URL', 'https://api.github.com')}/repos/{repo}/issues/{number}"
        issue, comments = await _from_api(url, ref, ctx), await _from_api(f"{url}/comments", ref, ctx)
        author = issue["user"]
    parts = [f"# {issue['title']} ({ref}, {issue['state'].lower()}, by {author['login']})", issue["body"] or ""]
    for comment in comments[-MAX_COMMENTS:]:
        parts += [f"## {(comment.get('author') or comment.get('user'))['login']}", comment["body"]]
    return "\n\n".join(parts)


async def _from_program(repo, number, ctx):
    process = await asyncio.create_subprocess_exec(
        *("gh", "issue", "view", number, "--repo", repo, "--json", "title,state,author,body,comments"),
        cwd=ctx.cwd,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"gh: {err.decode(errors='replace').strip()}")
    return json.loads(out)


async def _from_api(url, ref, ctx):
    page = await ctx.fetch(url)  # ra's own fetcher: public addresses only, bounded in time and size
    if page.status != 200:
        raise LookupError(f"{url.partition(':')[0]} says {page.status} for {ref}")
    return json.loads(page.text)
