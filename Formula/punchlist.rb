# Builds the main branch: `brew install --HEAD`. A release adds `url` and `sha256`.
class Punchlist < Formula
  desc "Task list that AI agents share"
  homepage "https://github.com/punchlist/punchlist"
  license "MIT"
  head "https://github.com/punchlist/punchlist.git", branch: "main"

  depends_on "python@3.13"

  def install
    system Formula["python@3.13"].opt_bin/"python3.13", "-m", "venv", libexec
    system libexec/"bin/pip", "install", "#{buildpath}[mcp]"
    bin.install_symlink libexec/"bin/punch", libexec/"bin/punchlist", libexec/"bin/punchlistd"
    generate_completions_from_executable(bin/"punch", "completion")
  end

  service do
    run [opt_bin/"punchlistd"]
    keep_alive true
  end

  test do
    ENV["XDG_RUNTIME_DIR"] = testpath
    system bin/"punch", "-c", "test", "add", "one"
    assert_match "one", shell_output("#{bin}/punch -c test list")
  end
end
