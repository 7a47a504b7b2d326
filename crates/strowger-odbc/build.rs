//! Makes what the program is linked with in the place of unixODBC's library: one with its name and nothing in it.
//!
//! So the program is built on machines without unixODBC, and has the library of the machine that it is started on, or does
//! not start there. A function that is missing here is told by the linker.

use std::env;
use std::path::PathBuf;

/// As the loader knows the library.
const NAME: &str = "libodbc.so.2";

/// The functions of ODBC that `odbc-sys` names.
const FUNCTIONS: &str = "AllocHandle BindCol BindParameter BrowseConnectW BulkOperations Cancel CancelHandle CloseCursor \
    ColAttribute ColAttributeW ColumnPrivilegesW Columns ColumnsW CompleteAsync Connect ConnectW CopyDesc DataSources \
    DataSourcesW DescribeCol DescribeColW DescribeParam Disconnect DriverConnect DriverConnectW Drivers DriversW EndTran \
    ExecDirect ExecDirectW Execute Fetch FetchScroll ForeignKeys ForeignKeysW FreeHandle FreeStmt GetConnectAttr \
    GetConnectAttrW GetCursorNameW GetData GetDescFieldW GetDescRecW GetDiagFieldW GetDiagRec GetDiagRecW GetEnvAttr \
    GetInfo GetInfoW GetStmtAttr GetStmtAttrW GetTypeInfo MoreResults NumParams NumResultCols ParamData Prepare PrepareW \
    PrimaryKeys PrimaryKeysW PutData RowCount SetConnectAttr SetConnectAttrW SetDescField SetDescFieldW SetEnvAttr SetPos \
    SetStmtAttr SetStmtAttrW Tables TablesW";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo says where"));
    let source = folder.join("odbc.c");
    let functions = FUNCTIONS.split_whitespace().map(|name| format!("void SQL{name}(void) {{}}\n"));
    std::fs::write(&source, functions.collect::<String>()).expect("the folder can be written to");
    let compiler = cc::Build::new().get_compiler();
    let made = compiler
        .to_command()
        .args(["-shared", "-nostdlib", "-fPIC"])
        .arg(format!("-Wl,-soname,{NAME}"))
        .arg("-o")
        .arg(folder.join("libodbc.so"))
        .arg(&source)
        .status();
    assert!(
        made.is_ok_and(|status| status.success()),
        "the C compiler makes no library: apt-get install build-essential"
    );
    println!("cargo:rustc-link-search=native={}", folder.display());
}
